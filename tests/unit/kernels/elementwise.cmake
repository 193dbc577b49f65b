farkv_test(elementwise_test
  SRCS elementwise_test.cc
  DEPS farkv_elementwise farkv_device_fake
  LABELS unit cpu)
