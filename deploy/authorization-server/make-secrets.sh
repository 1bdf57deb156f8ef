#!/bin/sh
# The secrets of docker-compose.yml, each made once, as files in the volumes of those who need them. Another start keeps them.
set -eu
redis=/secrets/redis gateway=/secrets/gateway authorization=/secrets/authorization metrics=/secrets/metrics idp=/secrets/idp
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
# The gateways know the digest of the key with which Prometheus reads their metrics.
if [ ! -e "$gateway/metrics-key.sha256" ]; then
  printf 'gha_%s' "$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=')" > "$metrics/metrics-key"
  digest=$(openssl dgst -sha256 -r "$metrics/metrics-key")
  chmod a+r "$metrics"/*
  printf '%s\n' "${digest%% *}" > "$gateway/metrics-key.sha256"
  chmod a+r "$gateway/metrics-key.sha256"
fi
# Of the profile `idp`: as what the gateway is known to Dex and Keycloak, and the password of the one person there.
if [ ! -e "$idp/client-secret" ]; then
  openssl rand -hex 16 > "$idp/password"
  salt=$(openssl rand -base64 24 | tr '+' '.' | cut -c 1-22)
  perl -e 'chomp(my $password = <STDIN>); print crypt($password, "\$2b\$10\$" . shift), "\n"' "$salt" \
    < "$idp/password" > "$idp/password.bcrypt"
  openssl rand -hex 32 > "$idp/secret"
  chmod a+r "$idp"/*
  mv "$idp/secret" "$idp/client-secret"
fi
