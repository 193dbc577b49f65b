farkv_test(kernels_matmul_test SRCS matmul_test.cc
  DEPS farkv_matmul farkv_device_fake hwy::hwy LABELS unit cpu)
farkv_test(kernels_matmul_quantized_test
  SRCS matmul_quantized_test.cc stored_weight.cc
  DEPS farkv_matmul farkv_device_fake hwy::hwy LABELS unit cpu)
farkv_test(kernels_quantized_groups_test
  SRCS quantized_groups_test.cc stored_weight.cc
  DEPS farkv_quantized_groups absl::strings LABELS unit cpu)
farkv_test(kernels_embedding_test
  SRCS embedding_test.cc stored_weight.cc
  DEPS farkv_elementwise farkv_quantized_groups farkv_device_fake
  LABELS unit cpu)
