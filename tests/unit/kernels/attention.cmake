farkv_test(attention_test
  SRCS attention_test.cc attention_case.cc
  DEPS farkv_attention hwy::hwy LABELS unit cpu)
farkv_test(attention_bits_test
  SRCS attention_bits_test.cc attention_case.cc
  DEPS farkv_attention hwy::hwy LABELS unit cpu)
farkv_test(attention_leaf_test
  SRCS attention_leaf_test.cc attention_case.cc
  DEPS farkv_attention hwy::hwy LABELS unit cpu)
farkv_test(attention_subtrees_test
  SRCS attention_subtrees_test.cc attention_case.cc
  DEPS farkv_attention hwy::hwy LABELS unit cpu)
farkv_test(attention_t2_test
  SRCS attention_t2_test.cc attention_case.cc
  DEPS farkv_attention farkv_page hwy::hwy LABELS unit cpu)
