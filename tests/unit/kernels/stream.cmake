farkv_test(stream_test
  SRCS stream_test.cc
  DEPS farkv_stream
  LABELS unit cpu)
