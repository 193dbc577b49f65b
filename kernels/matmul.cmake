farkv_library(farkv_matmul
  SRCS matmul.cc matmul_pack.cc matmul_avx512bf16.cc matmul_hwy.cc
  DEPS farkv_base farkv_stream
  PRIVATE_DEPS hwy::hwy)
