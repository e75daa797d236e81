// A warp has a block of 256 elements that share a scale, a lane the eight of them that one call of
// the generator rounds: 16 apart in one half of the block (random_bits.h). All stay in registers
// between the step and the encoding.
#include "backends/cuda/kernels/adamw_step.cuh"
#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"
#include "backends/cuda/kernels/tensor_list.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kWarps = 8;
constexpr int64_t kStateBlock = 256;
constexpr int kMapSize = 256;
constexpr int kParts = static_cast<int>(kRoundingParts);
static_assert(kParts * kLanes == kStateBlock);

using Map = float[kMapSize];

// As base::encode_dynamic: the index of the value nearest to x; NaN gives 0.
__device__ int encode(const Map& map, float x) {
  int code = 0;
  for (int step = kMapSize / 2; step > 0; step /= 2) {
    const int lower = code + step - 1;
    const float middle = (map[lower] + map[lower + 1]) * 0.5F;
    if (lower % 2 == 0 ? x > middle : x >= middle) code += step;
  }
  return code;
}

// A code whose sign differs from its value's moves one towards it; map[127] is zero, and positive.
__device__ int with_sign_of(float value, int code) {
  constexpr int kZero = 127;
  const bool value_negative = (__float_as_uint(value) >> 31) != 0;
  if ((code < kZero) == value_negative) return code;
  return value > 0.0F ? code + 1 : code - 1;
}

struct BlockOfLane {
  int64_t block;
  int64_t first;  // element of part 0; the others follow kRandomLanes apart
  int64_t end;    // elements of the tensor

  __device__ int64_t element(int part) const { return first + part * kRandomLanes; }
  __device__ bool has(int part) const { return element(part) < end; }
};

__device__ bool is_finite(float value) {
  return (__float_as_uint(value) & 0x7f800000U) != 0x7f800000U;
}

// One element's step; its new moments, both 0 where the gradient is not finite.
struct Moments {
  float at[2];
};

__device__ Moments advance(const AdamWConstants& constants, const CodedTensor& tensor,
                           const AdamWStep& step, const Moments& old, int64_t at, uint32_t bits) {
  const float raw = load_one({tensor.gradient, 0, tensor.gradient_is_bf16}, at);
  if (!is_finite(raw)) return {{0.0F, 0.0F}};
  const Operand weight_at{tensor.weight, 0, tensor.weight_is_bf16};
  const float root_correction = sqrtf(step.second_correction);
  const float step_size = step.learning_rate * root_correction / step.first_correction;
  const float epsilon = root_correction * constants.epsilon;
  const float g = raw * step.factor;
  const float first = __fmaf_rn(g, 1.0F - constants.beta1, __fmul_rn(old.at[0], constants.beta1));
  const float second =
      __fmaf_rn(__fmul_rn(1.0F - constants.beta2, g), g, __fmul_rn(old.at[1], constants.beta2));
  const float direction = first / __fadd_rn(sqrtf(second), epsilon);
  const float stepped =
      __fmul_rn(__fmaf_rn(-step_size, direction, load_one(weight_at, at)), step.keep);
  if (tensor.weight_is_bf16)
    static_cast<uint16_t*>(tensor.weight)[at] = round_stochastically(stepped, bits).bits;
  else
    static_cast<float*>(tensor.weight)[at] = stepped;
  return {{first, second}};
}

// Encodes moment k of all parts by the block's largest magnitude.
__device__ void store_codes(const CodedTensor& tensor, const BlockOfLane& place, int k,
                            const Moments (&moments)[kParts], const Map& map) {
  float largest = 0.0F;
  for (const Moments& moment : moments) largest = fmaxf(largest, fabsf(moment.at[k]));
  largest = warp_max(largest);
  if (threadIdx.x % kLanes == 0) tensor.scales[k][place.block] = largest;
  for (int part = 0; part < kParts; ++part) {
    if (!place.has(part)) return;
    const float value = moments[part].at[k];
    // In a block of zeros the quotient is NaN, whose code is 0 and then moves.
    const int code = encode(map, value / largest);
    tensor.codes[k][place.element(part)] =
        static_cast<uint8_t>(k == 0 ? with_sign_of(value, code) : code);
  }
}

__global__ void adamw_8bit_kernel(const __grid_constant__ AdamW8bitCodes launch,
                                  const __grid_constant__ DynamicMaps maps) {
  const CodedTensor& tensor = tensor_of_block(launch.tensors);
  __shared__ Map shared_maps[2];
  for (int i = static_cast<int>(threadIdx.x); i < kMapSize; i += kWarps * kLanes)
    for (int k = 0; k < 2; ++k) shared_maps[k][i] = maps.at[k][i];
  const AdamWStep& step = share_step(launch.constants, tensor);
  if (step.factor != step.factor) return;
  const int64_t lane = threadIdx.x % kLanes;
  const int64_t block = int64_t{blockIdx.x - tensor.first_block} * kWarps + threadIdx.x / kLanes;
  const BlockOfLane place{
      block, block * kStateBlock + lane / kRandomLanes * kRoundingBlock + lane % kRandomLanes,
      tensor.elements};
  if (block * kStateBlock >= tensor.elements) return;
  const int64_t call = block * kLanes + lane;
  const base::PhiloxCounter words = rounding_words(step.key, 0, call);
  Moments moments[kParts];
  for (int part = 0; part < kParts; ++part) {
    moments[part] = {{0.0F, 0.0F}};
    if (!place.has(part)) continue;
    const int64_t at = place.element(part);
    Moments old;
    for (int k = 0; k < 2; ++k)
      old.at[k] = __fmul_rn(shared_maps[k][tensor.codes[k][at]], tensor.scales[k][block]);
    moments[part] = advance(launch.constants, tensor, step, old, at, rounding_part(words, part));
  }
  // Every lane has read the old scales before one writes the new.
  __syncwarp();
  for (int k = 0; k < 2; ++k) store_codes(tensor, place, k, moments, shared_maps[k]);
}

}  // namespace

int64_t adamw_blocks(const CodedTensor& tensor) {
  return ceil_div(tensor.elements, kStateBlock * kWarps);
}

void adamw(const AdamW8bitCodes& run, const DynamicMaps& maps, cudaStream_t stream) {
  if (run.tensors.count > 0)
    launch(adamw_8bit_kernel, shape_of(run.tensors, kWarps * kLanes), stream, run, maps);
}

}  // namespace snug::backends::cuda
