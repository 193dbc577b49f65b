#include "bench/onednn_matmul.h"

#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bf16.h"
#include "dnnl.hpp"

namespace farkv::bench {
namespace {

using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

// oneDNN throws; nothing of ours does.
absl::Status Guarded(const std::function<void()>& body) {
  try {
    body();
  } catch (const dnnl::error& error) {
    return absl::InternalError(
        absl::StrCat("oneDNN: ", error.what(), ", status ", error.status));
  }
  return absl::OkStatus();
}

// oneDNN runs on the OpenMP library that it was built with, which has no
// header of its own here.
absl::Status SetThreads(int num_threads) {
  auto* set = reinterpret_cast<void (*)(int)>(
      dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set == nullptr) {
    return absl::FailedPreconditionError(
        "oneDNN runs on something else than OpenMP; its thread count cannot "
        "be set");
  }
  set(num_threads);
  return absl::OkStatus();
}

// bf16 where oneDNN has products of it: on CPUs with AVX-512.
Type BestType(const dnnl::engine& engine) {
  const auto matrix = [](Tag tag) {
    return dnnl::memory::desc({16, 16}, Type::bf16, tag);
  };
  const dnnl::memory::desc out({16, 16}, Type::f32, Tag::ab);
  const bool has_bf16 = Guarded([&] {
                          const dnnl::matmul::primitive_desc description(
                              {matrix(Tag::ab), matrix(Tag::any), out}, engine);
                        }).ok();
  return has_bf16 ? Type::bf16 : Type::f32;
}

// bf16 values into memory of either type.
void CopyIn(const uint16_t* values, size_t count, dnnl::memory& memory) {
  if (memory.get_desc().data_type() == Type::bf16) {
    std::copy_n(values, count,
                static_cast<uint16_t*>(memory.get_data_handle()));
  } else {
    std::transform(values, values + count,
                   static_cast<float*>(memory.get_data_handle()), Bf16ToFloat);
  }
}

}  // namespace

struct OneDnnMatMul::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  const Type type = BestType(engine);
  int32_t rows = 0;
  int32_t cols = 0;
  // In the order that the largest product prefers; oneDNN's preference does
  // not depend on the number of rows (checked by SetActivations).
  std::vector<dnnl::memory> weights;
  dnnl::matmul::primitive_desc description;
  dnnl::matmul product;
  dnnl::memory activations;
  dnnl::memory result;
  std::vector<float> out;

  dnnl::matmul::primitive_desc Describe(int64_t num_rows) const {
    return {{{{num_rows, cols}, type, Tag::ab},
             {{cols, rows}, type, Tag::any},
             {{num_rows, rows}, Type::f32, Tag::ab}},
            engine};
  }

  void Prepare(const std::vector<uint16_t>& values) {
    const int64_t num_rows = static_cast<int64_t>(values.size()) / cols;
    description = Describe(num_rows);
    for (dnnl::memory& weight : weights) {
      if (weight.get_desc() == description.weights_desc()) continue;
      dnnl::memory ordered(description.weights_desc(), engine);
      dnnl::reorder(weight, ordered).execute(stream, weight, ordered);
      stream.wait();
      weight = ordered;
    }
    product = dnnl::matmul(description);
    activations = dnnl::memory(description.src_desc(), engine);
    CopyIn(values.data(), values.size(), activations);
    out.assign(static_cast<size_t>(num_rows * rows), 0.0f);
    result = dnnl::memory(description.dst_desc(), engine, out.data());
  }
};

OneDnnMatMul::OneDnnMatMul(std::unique_ptr<State> state)
    : state_(std::move(state)) {}

OneDnnMatMul::~OneDnnMatMul() = default;

absl::StatusOr<std::unique_ptr<OneDnnMatMul>> OneDnnMatMul::Create(
    const std::vector<const uint16_t*>& weights, int32_t rows, int32_t cols,
    int num_threads) {
  if (absl::Status status = SetThreads(num_threads); !status.ok()) {
    return status;
  }
  std::unique_ptr<State> state;
  absl::Status status = Guarded([&] {
    state = std::make_unique<State>();
    state->rows = rows;
    state->cols = cols;
    // [rows][cols] is the transpose of oneDNN's [cols][rows].
    const dnnl::memory::desc plain({cols, rows}, state->type, Tag::ba);
    for (const uint16_t* weight : weights) {
      dnnl::memory memory(plain, state->engine);
      CopyIn(weight, static_cast<size_t>(rows) * static_cast<size_t>(cols),
             memory);
      state->weights.push_back(memory);
    }
  });
  if (!status.ok()) return status;
  return std::unique_ptr<OneDnnMatMul>(new OneDnnMatMul(std::move(state)));
}

absl::Status OneDnnMatMul::SetActivations(
    const std::vector<uint16_t>& activations) {
  return Guarded([&] { state_->Prepare(activations); });
}

absl::Status OneDnnMatMul::Run(size_t index) {
  return Guarded([&] {
    state_->product.execute(state_->stream,
                            {{DNNL_ARG_SRC, state_->activations},
                             {DNNL_ARG_WEIGHTS, state_->weights[index]},
                             {DNNL_ARG_DST, state_->result}});
    state_->stream.wait();
  });
}

const std::vector<float>& OneDnnMatMul::out() const { return state_->out; }

const char* OneDnnMatMul::name() const {
  return state_->type == Type::bf16 ? "oneDNN bf16" : "oneDNN f32";
}

std::string OneDnnMatMul::implementation() const {
  return state_->description.impl_info_str();
}

}  // namespace farkv::bench
