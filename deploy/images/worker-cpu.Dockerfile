# A worker that computes on the CPU, with farkvctl and the built-in reasoner.
# From the top of the repository:
#   docker build -f deploy/images/worker-cpu.Dockerfile -t farkv-worker .
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY scripts/setup.sh scripts/setup.sh
RUN ./scripts/setup.sh && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake --preset release -DFARKV_BUILD_TESTS=OFF \
    && cmake --build build/release --target farkv-worker farkvctl \
    && strip build/release/bin/farkv-worker build/release/bin/farkvctl

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends \
        libabsl20220623 libcivetweb1 libfmt9 libgrpc++1.51 libhwy1 libisal2 \
        libnuma1 libpcre2-8-0 libprometheus-cpp-core1.0 libprotobuf32 \
        libspdlog1.10 libstdc++6 libucx0 libutf8proc2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/farkv-worker \
    /src/build/release/bin/farkvctl /usr/bin/
COPY models/reasoner /usr/share/farkv/models/reasoner
USER 65532:65532
# Generate API, admin, metrics.
EXPOSE 7501 7502 7503
ENTRYPOINT ["farkv-worker"]
