// A warp handles a block of 256 elements that share a scale, a lane eight adjacent ones
// (lane_elements.cuh). They all stay in registers between the step and the encoding.
#include "backends/cuda/kernels/lane_elements.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/tensor_list.cuh"
#include "backends/cuda/optimizer/kernels/adamw_step.cuh"
#include "backends/cuda/optimizer/kernels/dynamic_coding.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kWarps = 8;
static_assert(kOfWarp == 256);  // the number of elements that share a scale

// Moves a code by one where its sign differs from its value's; map[127] is zero and counts as
// positive.
__device__ int with_sign_of(float value, int code) {
  constexpr int kZero = 127;
  const bool value_negative = (__float_as_uint(value) >> 31) != 0;
  if ((code < kZero) == value_negative) return code;
  return value > 0.0F ? code + 1 : code - 1;
}

__device__ bool is_finite(float value) {
  return (__float_as_uint(value) & 0x7f800000U) != 0x7f800000U;
}

// The tensor's values that an element's step needs, computed once per thread.
struct StepConstants {
  float factor, keep, step_size, epsilon, beta1, beta2, rest1, rest2;

  __device__ StepConstants(const AdamWConstants& constants, const AdamWStep& step)
      : factor(step.factor),
        keep(step.coded.keep),
        step_size(step.coded.step_size),
        epsilon(step.coded.epsilon),
        beta1(constants.beta1),
        beta2(constants.beta2),
        rest1(1.0F - constants.beta1),
        rest2(1.0F - constants.beta2) {}
};

struct LaneCodes {
  uint8_t at[kOfLane];
};
static_assert(sizeof(LaneCodes) == sizeof(uint64_t));

__device__ LaneCodes load_codes(const uint8_t* codes, const LanePlace& place, bool vectors) {
  uint64_t bits = 0;
  if (vectors) {
    bits = *reinterpret_cast<const uint64_t*>(codes + place.first);
  } else {
#pragma unroll
    for (int i = 0; i < kOfLane; ++i)
      if (place.has(i)) bits |= uint64_t{codes[place.first + i]} << (8 * i);
  }
  LaneCodes loaded;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) loaded.at[i] = static_cast<uint8_t>(bits >> (8 * i));
  return loaded;
}

__device__ void store_codes(uint8_t* codes, const LanePlace& place, bool vectors,
                            const LaneCodes& stored) {
  uint64_t bits = 0;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) bits |= uint64_t{stored.at[i]} << (8 * i);
  if (vectors) {
    *reinterpret_cast<uint64_t*>(codes + place.first) = bits;
    return;
  }
#pragma unroll
  for (int i = 0; i < kOfLane; ++i)
    if (place.has(i)) codes[place.first + i] = stored.at[i];
}

// Returns the codes of the moments, and writes the block's new scale.
__device__ LaneCodes encode_moments(const Coding& coding, const LaneElements& moments,
                                    bool is_signed, float* scale) {
  float largest = 0.0F;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) largest = fmaxf(largest, fabsf(moments.at[i]));
  largest = warp_max(largest);
  if (threadIdx.x % kLanes == 0) *scale = largest;
  LaneCodes codes;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    // In a block of zeros the quotient is NaN, whose code is 0 before its sign is adjusted.
    const int code = encode(coding, moments.at[i] / largest, is_signed);
    codes.at[i] = static_cast<uint8_t>(is_signed ? with_sign_of(moments.at[i], code) : code);
  }
  return codes;
}

__global__ void __launch_bounds__(kWarps* kLanes)
    adamw_8bit_kernel(const __grid_constant__ AdamW8bitCodes launch,
                      const __grid_constant__ DynamicMaps maps) {
  const CodedTensor& tensor = tensor_of_block(launch.tensors);
  __shared__ Coding codings[2];
  __shared__ RoundingBits traded[kWarps];
  share_codings(maps, codings);
  const AdamWStep& step = share_step(launch.constants, tensor);
  if (step.factor != step.factor) return;
  const int64_t warp = threadIdx.x / kLanes;
  const int64_t block = int64_t{blockIdx.x - tensor.first_block} * kWarps + warp;
  if (block * kOfWarp >= tensor.elements) return;
  const LanePlace place = place_of_lane(block, tensor.elements);
  const bool vectors = tensor.vectors && place.is_full();
  const DeviceRows weight_at{tensor.weight, 0, tensor.weight_format};
  const LaneElements gradient =
      load_lane({tensor.gradient, 0, tensor.gradient_format}, place, vectors);
  LaneElements weight = load_lane(weight_at, place, vectors);
  const LaneCodes old_first = load_codes(tensor.codes[0], place, vectors);
  const LaneCodes old_second = load_codes(tensor.codes[1], place, vectors);
  const float first_scale = tensor.scales[0][block];
  const float second_scale = tensor.scales[1][block];
  const bool rounds = tensor.weight_format == ElementFormat::bf16;
  LaneBits bits{};
  if (rounds) bits = trade_bits(step.key, 0, block + tensor.first / kOfWarp, traded[warp]);
  const StepConstants constants(launch.constants, step);
  LaneElements first;
  LaneElements second;
#pragma unroll
  for (int i = 0; i < kOfLane; ++i) {
    const float g = gradient.at[i] * constants.factor;
    first.at[i] = __fmaf_rn(
        g, constants.rest1,
        __fmul_rn(__fmul_rn(codings[0].values[old_first.at[i]], first_scale), constants.beta1));
    second.at[i] = __fmaf_rn(
        __fmul_rn(constants.rest2, g), g,
        __fmul_rn(__fmul_rn(codings[1].values[old_second.at[i]], second_scale), constants.beta2));
    const float direction = first.at[i] / __fadd_rn(sqrtf(second.at[i]), constants.epsilon);
    const float stepped =
        __fmul_rn(__fmaf_rn(-constants.step_size, direction, weight.at[i]), constants.keep);
    // A gradient that is not finite leaves the weight unchanged and sets the moments to zero.
    const bool takes_part = is_finite(gradient.at[i]) && place.has(i);
    const float kept = rounds ? rounded(stepped, bits.of(i)) : stepped;
    weight.at[i] = takes_part ? kept : weight.at[i];
    first.at[i] = takes_part ? first.at[i] : 0.0F;
    second.at[i] = takes_part ? second.at[i] : 0.0F;
  }
  store_lane(weight_at, place, vectors, weight);
  // Every lane must have read the old scales before any writes the new ones.
  __syncwarp();
  store_codes(tensor.codes[0], place, vectors,
              encode_moments(codings[0], first, true, &tensor.scales[0][block]));
  store_codes(tensor.codes[1], place, vectors,
              encode_moments(codings[1], second, false, &tensor.scales[1][block]));
}

}  // namespace

int64_t step_blocks(const CodedTensor& tensor) {
  return ceil_div(tensor.elements, kOfWarp * kWarps);
}

void adamw(const AdamW8bitCodes& run, const DynamicMaps& maps, cudaStream_t stream) {
  if (run.tensors.count > 0)
    launch(adamw_8bit_kernel, shape_of(run.tensors, kWarps * kLanes), stream, run, maps);
}

}  // namespace snug::backends::cuda
