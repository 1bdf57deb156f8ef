#!/bin/sh
# The secrets of docker-compose.yml, each made once, as files in the volumes of those who need them. Another start keeps them.
set -eu
redis=/secrets/redis gateway=/secrets/gateway authorization=/secrets/authorization
if [ ! -e "$gateway/redis-password" ]; then
  password=$(openssl rand -hex 32)
  printf 'requirepass %s\n' "$password" > "$redis/redis.conf"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=authorization \
    -addext subjectAltName=DNS:authorization -keyout "$authorization/tls.key" -out "$authorization/tls.crt"
  cp "$authorization/tls.crt" "$gateway/authorization.crt"
  openssl rand -hex 32 > "$gateway/api-key"
  # Each of the readers has a user of its own, and only the volume that it is given.
  chmod a+r "$redis"/* "$gateway"/* "$authorization"/*
  # Last: a start that was cut off begins anew.
  printf '%s\n' "$password" > "$gateway/redis-password"
  chmod a+r "$gateway/redis-password"
fi
