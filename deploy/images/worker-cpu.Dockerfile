# A worker that computes on the CPU, with farkvctl and the built-in reasoner.
# scripts/build_images.sh builds all images; this one alone, from the top of the
# repository:
#   docker build -f deploy/images/worker-cpu.Dockerfile -t farkv-worker .
# The last stage has no shell: what it holds is what collect.sh copies.
ARG DEBIAN=debian:bookworm-slim

# --build-context build=FOLDER puts programs from FOLDER/out in its place.
FROM ${DEBIAN} AS build
WORKDIR /src
COPY scripts/setup.sh scripts/setup.sh
RUN ./scripts/setup.sh && rm -rf /var/lib/apt/lists/*
COPY . .
ARG JOBS=2
RUN cmake --preset release -DFARKV_BUILD_TESTS=OFF \
    && cmake --build build/release -j "${JOBS}" --target farkv-worker farkvctl \
    && mkdir /out && cp build/release/bin/farkv-worker \
        build/release/bin/farkvctl /out/ && strip /out/*

FROM ${DEBIAN} AS root
RUN apt-get update && apt-get install -y --no-install-recommends \
        libabsl20220623 libcivetweb1 libfmt9 libgrpc++1.51 libhwy1 libisal2 \
        libncurses6 libnuma1 libpcre2-8-0 libprometheus-cpp-core1.0 \
        libprotobuf32 libspdlog1.10 libstdc++6 libucx0 libutf8proc2
COPY deploy/images/collect.sh /
COPY --from=build /out/farkv-worker /out/farkvctl /usr/bin/
RUN /collect.sh /image farkv-worker farkvctl

FROM scratch
COPY --from=root /image/ /
COPY models/reasoner /usr/share/farkv/models/reasoner
USER 65532:65532
# Generate API, admin, metrics.
EXPOSE 7501 7502 7503
ENTRYPOINT ["farkv-worker"]
