# A memory node with farkvctl. scripts/build_images.sh builds all images; this
# one alone, from the top of the repository:
#   docker build -f deploy/images/node.Dockerfile -t farkv-memory-node .
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
    && cmake --build build/release -j "${JOBS}" --target farkv-memory-node farkvctl \
    && mkdir /out && cp build/release/bin/farkv-memory-node \
        build/release/bin/farkvctl /out/ && strip /out/*

FROM ${DEBIAN} AS root
RUN apt-get update && apt-get install -y --no-install-recommends \
        libabsl20220623 libcivetweb1 libfmt9 libgrpc++1.51 libhwy1 libisal2 \
        libncurses6 libnuma1 libprometheus-cpp-core1.0 libprotobuf32 \
        libspdlog1.10 libstdc++6 libucx0
COPY deploy/images/collect.sh /
COPY --from=build /out/farkv-memory-node /out/farkvctl /usr/bin/
RUN /collect.sh /image farkv-memory-node farkvctl

FROM scratch
COPY --from=root /image/ /
USER 65532:65532
# Control plane, admin, metrics, data plane.
EXPOSE 7401 7402 7403 7404
ENTRYPOINT ["farkv-memory-node"]
