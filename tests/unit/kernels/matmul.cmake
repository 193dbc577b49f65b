farkv_test(kernels_matmul_test SRCS matmul_test.cc
  DEPS farkv_matmul hwy::hwy LABELS unit cpu)
