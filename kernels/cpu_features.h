// What this CPU can run beyond what Highway's dispatch covers. Thread-safe.
#ifndef FARKV_KERNELS_CPU_FEATURES_H_
#define FARKV_KERNELS_CPU_FEATURES_H_

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace farkv {

// True when the CPU and the operating system run the instructions of the
// *_avx512bf16.cc files: AVX-512 F, BW, VL and BF16. Asked once, then cached;
// every bf16 product of the process follows this one answer.
inline bool HasAvx512Bf16() {
#if defined(__x86_64__)
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bf16");
  }();
  return has;
#else
  return false;
#endif
}

// Likewise for the *_avx512vnni.cc files: AVX-512 F, BW, VL and VNNI.
inline bool HasAvx512Vnni() {
#if defined(__x86_64__)
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
  }();
  return has;
#else
  return false;
#endif
}

// Likewise for the *_avx2.cc files: AVX2, and F16C for fp16 scales.
inline bool HasAvx2() {
#if defined(__x86_64__)
  static const bool has = [] {
    __builtin_cpu_init();
    // clang 14 does not know the name "f16c".
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const bool f16c =
        __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
    return f16c && __builtin_cpu_supports("avx2");
  }();
  return has;
#else
  return false;
#endif
}

}  // namespace farkv

#endif  // FARKV_KERNELS_CPU_FEATURES_H_
