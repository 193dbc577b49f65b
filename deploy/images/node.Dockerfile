# A memory node with farkvctl. From the top of the repository:
#   docker build -f deploy/images/node.Dockerfile -t farkv-memory-node .
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY scripts/setup.sh scripts/setup.sh
RUN ./scripts/setup.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release -DFARKV_BUILD_TESTS=OFF \
    && cmake --build build/release --target farkv-memory-node farkvctl \
    && strip build/release/bin/farkv-memory-node build/release/bin/farkvctl

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
        libabsl20220623 libcivetweb1 libfmt9 libgrpc++1.51 libhwy1 libisal2 \
        libnuma1 libprometheus-cpp-core1.0 libprotobuf32 libspdlog1.10 \
        libstdc++6 libucx0 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/farkv-memory-node \
    /src/build/release/bin/farkvctl /usr/bin/
USER 65532:65532
# Control plane, admin, metrics, data plane.
EXPOSE 7401 7402 7403 7404
ENTRYPOINT ["farkv-memory-node"]
