farkv_library(farkv_attention
  SRCS attention_cpu.cc attention_plan.cc attention_round.cc attention_rows.cc
       attention_subtrees.cc attention_t2.cc attention_unit.cc
       attention_avx512bf16.cc attention_highway.cc
  DEPS farkv_stream farkv_layout farkv_page farkv_attention_tree
  PRIVATE_DEPS hwy::hwy)
