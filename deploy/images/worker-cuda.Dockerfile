# A worker built where the CUDA toolkit is, with farkvctl; the driver comes from
# the host (NVIDIA container toolkit). From the top of the repository:
#   docker build -f deploy/images/worker-cuda.Dockerfile -t farkv-worker-cuda .
# A release without a CUDA backend computes on the CPU in this image, too.
FROM debian:bookworm-slim AS cuda
ARG CUDA_KEYRING=https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/cuda-keyring_1.1-1_all.deb
ADD ${CUDA_KEYRING} /tmp/cuda-keyring.deb
RUN apt-get update && apt-get install -y --no-install-recommends \
        ca-certificates \
    && dpkg -i /tmp/cuda-keyring.deb && rm /tmp/cuda-keyring.deb \
    && rm -rf /var/lib/apt/lists/*

FROM cuda AS build
WORKDIR /src
COPY scripts/setup.sh scripts/setup.sh
RUN ./scripts/setup.sh && apt-get install -y --no-install-recommends \
        cuda-nvcc-13-0 cuda-cudart-dev-13-0 \
    && rm -rf /var/lib/apt/lists/*
COPY . .
RUN PATH="/usr/local/cuda/bin:$PATH" cmake --preset release \
        -DFARKV_BUILD_TESTS=OFF \
    && cmake --build build/release --target farkv-worker farkvctl \
    && strip build/release/bin/farkv-worker build/release/bin/farkvctl

FROM cuda
RUN apt-get update && apt-get install -y --no-install-recommends \
        cuda-cudart-13-0 libabsl20220623 libcivetweb1 libfmt9 libgrpc++1.51 \
        libhwy1 libisal2 libncurses6 libnuma1 libpcre2-8-0 \
        libprometheus-cpp-core1.0 libprotobuf32 libspdlog1.10 libstdc++6 libucx0 libutf8proc2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/farkv-worker \
    /src/build/release/bin/farkvctl /usr/bin/
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
# Generate API, admin, metrics.
EXPOSE 7501 7502 7503
ENTRYPOINT ["farkv-worker"]
