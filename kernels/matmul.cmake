# The group formats of quantised weights, for embeddings too.
farkv_library(farkv_quantized_groups
  SRCS quantized_groups.cc
  DEPS farkv_base)

farkv_library(farkv_matmul
  SRCS matmul.cc matmul_activations.cc matmul_pack.cc matmul_avx2.cc matmul_avx512bf16.cc
    matmul_avx512vnni.cc matmul_hwy.cc matmul_quantize.cc matmul_quantized_hwy.cc
  DEPS farkv_base farkv_stream
  PRIVATE_DEPS farkv_quantized_groups hwy::hwy)
