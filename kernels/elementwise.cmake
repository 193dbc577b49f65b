farkv_library(farkv_elementwise
  SRCS elementwise_cpu.cc row_math.cc
  DEPS farkv_stream farkv_layout
  PRIVATE_DEPS farkv_quantized_groups hwy::hwy)
