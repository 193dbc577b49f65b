farkv_test(kernels_matmul_test SRCS matmul_test.cc
  DEPS farkv_matmul farkv_device_fake hwy::hwy LABELS unit cpu)
