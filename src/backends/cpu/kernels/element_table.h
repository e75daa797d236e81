// Tables of a function template's instances by element type, for kernel files only. Template
// arguments that come before the element types follow the template's name. No instance has both
// bf16 and fp16.
#pragma once

#include "backends/cpu/kernels/element.h"

// Instances function<.., X>.
#define SNUG_BY_ELEMENT(function, ...)                                                         \
  {                                                                                            \
    function<__VA_ARGS__ __VA_OPT__(, ) float>, function<__VA_ARGS__ __VA_OPT__(, ) uint16_t>, \
        function<__VA_ARGS__ __VA_OPT__(, ) Fp16>                                              \
  }
// Instances function<.., X> whose other type is bf16 or fp16, respectively.
#define SNUG_NEXT_TO_BF16(function, ...) \
  { function<__VA_ARGS__, float>, function<__VA_ARGS__, uint16_t>, nullptr }
#define SNUG_NEXT_TO_FP16(function, ...) \
  { function<__VA_ARGS__, float>, nullptr, function<__VA_ARGS__, Fp16> }

// Instances function<.., X, Y>.
#define SNUG_BY_TWO_ELEMENTS(function, ...)                               \
  {                                                                       \
    SNUG_BY_ELEMENT(function, __VA_ARGS__ __VA_OPT__(, ) float),          \
        SNUG_NEXT_TO_BF16(function, __VA_ARGS__ __VA_OPT__(, ) uint16_t), \
        SNUG_NEXT_TO_FP16(function, __VA_ARGS__ __VA_OPT__(, ) Fp16)      \
  }

// Instances function<.., X, Y, Z>.
#define SNUG_BY_THREE_ELEMENTS(function, ...)                                        \
  {                                                                                  \
    SNUG_BY_TWO_ELEMENTS(function, __VA_ARGS__ __VA_OPT__(, ) float),                \
        {SNUG_NEXT_TO_BF16(function, __VA_ARGS__ __VA_OPT__(, ) uint16_t, float),    \
         SNUG_NEXT_TO_BF16(function, __VA_ARGS__ __VA_OPT__(, ) uint16_t, uint16_t), \
         {nullptr, nullptr, nullptr}},                                               \
    {                                                                                \
      SNUG_NEXT_TO_FP16(function, __VA_ARGS__ __VA_OPT__(, ) Fp16, float),           \
          {nullptr, nullptr, nullptr},                                               \
          SNUG_NEXT_TO_FP16(function, __VA_ARGS__ __VA_OPT__(, ) Fp16, Fp16)         \
    }                                                                                \
  }
