# Images of Gatehouse. The sources run as they are: Node strips their types. Only the console is bundled, for browsers.
#
#   docker build .                           the gateway, for upstreams over HTTP and programs that you add
#   docker build --target with-runtimes .    with npm, Python and uv as well, for upstreams that `npx` or `uvx` starts
#
# A release pins its bases by digest: --build-arg NODE_DIGEST=@sha256:… --build-arg UV_DIGEST=@sha256:…

ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim
ARG NODE_DIGEST=
ARG UV_IMAGE=ghcr.io/astral-sh/uv:0.9
ARG UV_DIGEST=

FROM ${UV_IMAGE}${UV_DIGEST} AS uv

FROM ${NODE_IMAGE}${NODE_DIGEST} AS base
# Process 1 is an init: what stdio servers leave behind becomes its child, and somebody has to collect it.
RUN apt-get update \
  && apt-get install -y --no-install-recommends tini \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o 1000 -g 1000 /data

FROM base AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts

FROM dependencies AS sources
# Above the sources, so that what the gateway needs stays as it is locked. (npm cannot install at the root itself.)
RUN mkdir /opt/bundler && cd /opt/bundler \
  && npm install --no-package-lock --ignore-scripts \
    "esbuild@$(node -p "require('/app/package.json').devDependencies.esbuild")" \
  && ln -s /opt/bundler/node_modules /node_modules
COPY scripts/console.ts scripts/
COPY src src
RUN node scripts/console.ts && rm -r src/console && mv .tap/console src/console

# The authorization server of docker-compose.yml: for development only.
FROM base AS authorization
RUN apt-get update \
  && apt-get install -y --no-install-recommends openssl \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o 1000 -g 1000 /secrets/redis /secrets/gateway /secrets/authorization /secrets/metrics /secrets/idp
WORKDIR /app
COPY deploy/authorization-server/package.json deploy/authorization-server/package-lock.json ./
RUN npm ci --omit=dev --ignore-scripts
COPY deploy/authorization-server/ ./
ENV NODE_ENV=production
USER 1000:1000
ENTRYPOINT ["/usr/bin/tini", "--", "node", "server.mjs"]

FROM base AS with-runtimes
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates python3 \
  && rm -rf /var/lib/apt/lists/*
COPY --from=uv /uv /uvx /usr/local/bin/
# All that they write goes below /tmp: with a read-only root file system that is the one place. Programs among it run
# there: --tmpfs /tmp:exec,size=512m, as engines mount it without `exec` otherwise.
ENV NODE_ENV=production HOME=/tmp npm_config_cache=/tmp/npm UV_CACHE_DIR=/tmp/uv UV_TOOL_DIR=/tmp/uv-tools
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY bin bin
COPY --from=sources /app/src src
COPY deploy/healthcheck.mjs deploy/
ARG VERSION=0.0.0-local
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Gatehouse with runtimes" \
  org.opencontainers.image.description="A multi-tenant, remote MCP gateway, with Node, npm, Python and uv for stdio servers" \
  org.opencontainers.image.source="https://github.com/mcp-gatehouse/gatehouse" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "/app/deploy/healthcheck.mjs"]
ENTRYPOINT ["/usr/bin/tini", "--", "node", "/app/bin/gatehouse.mjs"]
CMD ["serve", "--config", "/etc/gatehouse/gatehouse.yaml", "--host", "0.0.0.0", "--port", "8080"]

FROM base AS gateway
# Nothing that installs programs.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn*
ENV NODE_ENV=production HOME=/tmp
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json LICENSE ./
COPY bin bin
COPY --from=sources /app/src src
COPY deploy/healthcheck.mjs deploy/
ARG VERSION=0.0.0-local
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Gatehouse" \
  org.opencontainers.image.description="A multi-tenant, remote MCP gateway" \
  org.opencontainers.image.source="https://github.com/mcp-gatehouse/gatehouse" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="${VERSION}" \
  org.opencontainers.image.revision="${REVISION}"
USER 1000:1000
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s CMD ["node", "/app/deploy/healthcheck.mjs"]
ENTRYPOINT ["/usr/bin/tini", "--", "node", "/app/bin/gatehouse.mjs"]
CMD ["serve", "--config", "/etc/gatehouse/gatehouse.yaml", "--host", "0.0.0.0", "--port", "8080"]
