#include "backends/cuda/loss/kernels/cross_entropy.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/over_items.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kListThreads = 1024;

// The token of row i, or -1 if there is no such row.
__device__ int64_t token_of(const TrainedRows& trained, int64_t i) {
  if (trained.numbers == nullptr) return i;
  const int64_t row = trained.first + i;
  return row < *trained.count ? trained.numbers[row] : -1;
}

// log(sum(exp)) of a row in two terms: the largest element, and the logarithm of the sum relative
// to it; and with smoothing the mean of the row.
struct LogSum {
  float largest;
  float log_rest;
  float mean;
};

// A thread's largest element so far, and its sum of exponentials relative to that; and with
// smoothing its sum of elements.
template <bool kSmooths>
struct PartSum {
  float largest = -INFINITY;
  float sum = 0.0F;
  float plain_sum = 0.0F;

  // The terms are computed independently of one another.
  template <int kCount>
  __device__ void add(const Elements<kCount>& logits) {
    float largest_now = largest;
#pragma unroll
    for (int i = 0; i < kCount; ++i) largest_now = fmaxf(largest_now, logits.at[i]);
    if constexpr (kSmooths)
#pragma unroll
      for (int i = 0; i < kCount; ++i) plain_sum += logits.at[i];
    if (largest_now > largest) {
      sum *= expf(largest - largest_now);
      largest = largest_now;
    }
    float terms[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) terms[i] = expf(logits.at[i] - largest);
#pragma unroll
    for (int width = kCount / 2; width > 0; width /= 2)
#pragma unroll
      for (int i = 0; i < width; ++i) terms[i] += terms[i + width];
    sum += terms[0];
  }
};

// The number of columns that are read as vectors; the others are read one by one.
__device__ int64_t vector_columns(const SoftmaxRun& run) {
  return run.vectors ? run.vocab / kVectorElements * kVectorElements : 0;
}

// The transformation of logits, and of gradients back through it.
template <bool kCaps>
struct LogitForm {
  float scale;
  float cap;

  __device__ explicit LogitForm(const SoftmaxRun& run) : scale(run.scale), cap(run.softcap) {}

  __device__ float logit(float value) const {
    if constexpr (kCaps) {
      value *= scale;
      if (cap > 0.0F) value = cap * tanhf(value / cap);
    }
    return value;
  }
  template <int kCount>
  __device__ Elements<kCount> logits(Elements<kCount> values) const {
    for (int i = 0; i < kCount; ++i) values.at[i] = logit(values.at[i]);
    return values;
  }
  // The derivative of a logit with respect to its value before scale and cap.
  __device__ float slope(float logit) const {
    const float share = cap > 0.0F ? logit / cap : 0.0F;
    return scale * (1.0F - share * share);
  }
};

// Each thread keeps its own maximum and rescales its sum when that grows; at the end the block
// combines them.
template <bool kCaps, bool kSmooths>
__device__ LogSum log_sum_of(const SoftmaxRun& run, int64_t row) {
  const LogitForm<kCaps> form(run);
  PartSum<kSmooths> part;
  const int64_t begin = row * run.logits.stride;
  const int64_t in_vectors = vector_columns(run);
  const int64_t step = int64_t{blockDim.x} * kVectorElements;
  int64_t j = int64_t{threadIdx.x} * kVectorElements;
  for (; j + step < in_vectors; j += 2 * step) {
    const Elements<kVectorElements> one = load<kVectorElements>(run.logits, begin + j);
    const Elements<kVectorElements> other = load<kVectorElements>(run.logits, begin + j + step);
    part.add(form.logits(one));
    part.add(form.logits(other));
  }
  if (j < in_vectors) part.add(form.logits(load<kVectorElements>(run.logits, begin + j)));
  for (j = in_vectors + threadIdx.x; j < run.vocab; j += blockDim.x)
    part.add(form.logits(load<1>(run.logits, begin + j)));
  const float block_largest = block_max(part.largest);
  if (part.sum > 0.0F) part.sum *= expf(part.largest - block_largest);
  LogSum total{block_largest, logf(block_sum(part.sum)), 0.0F};
  if constexpr (kSmooths) total.mean = block_sum(part.plain_sum) / static_cast<float>(run.vocab);
  return total;
}

// Writes the gradients for columns [begin, end) of a row, kCount per thread at a time. All threads
// read a part of the row, and before the first part the target's logit, before any of them writes
// it: dlogits of half the width may share memory with the logits, and are then never ahead of them.
// The whole block must call it.
template <int kCount, bool kCaps, bool kSmooths>
__device__ void store_gradients(const SoftmaxRun& run, int64_t row, int64_t target,
                                const LogSum& total, int64_t begin, int64_t end) {
  const LogitForm<kCaps> form(run);
  const float scale = run.factors.data[token_of(run.trained, row) * run.factors.step];
  // What the loss wants of the target's probability, and of every one.
  const float of_target = kSmooths ? 1.0F - run.smoothing : 1.0F;
  const float of_each = kSmooths ? run.smoothing / static_cast<float>(run.vocab) : 0.0F;
  const int64_t part = int64_t{blockDim.x} * kCount;
  for (; begin < end; begin += part) {
    const int64_t j = begin + int64_t{threadIdx.x} * kCount;
    Elements<kCount> gradient{};
    if (j < end) gradient = form.logits(load<kCount>(run.logits, row * run.logits.stride + j));
    __syncthreads();
    if (j >= end) continue;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float softmax = expf(gradient.at[i] - total.largest - total.log_rest);
      const float slope = kCaps ? scale * form.slope(gradient.at[i]) : scale;
      float error = j + i == target ? softmax - of_target : softmax;
      if constexpr (kSmooths) error -= of_each;
      gradient.at[i] = error * slope;
    }
    store<kCount>(run.dlogits, row * run.dlogits.stride + j, gradient);
  }
}

template <bool kCaps, bool kSmooths>
__global__ void softmax_kernel(SoftmaxRun run) {
  const int64_t row = blockIdx.x;
  const int64_t token = token_of(run.trained, row);
  const int64_t target = token < 0 ? -1 : run.targets[token];
  if (target < 0) {
    if (run.dlogits.data != nullptr)
      for (int64_t j = threadIdx.x; j < run.vocab; j += blockDim.x)
        store_one(run.dlogits, row * run.dlogits.stride + j, 0.0F);
    if (run.losses != nullptr && token >= 0 && threadIdx.x == 0) run.losses[token] = 0.0F;
    return;
  }
  device_check(target < run.vocab);
  const LogSum total = log_sum_of<kCaps, kSmooths>(run, row);
  if (run.losses != nullptr && threadIdx.x == 0) {
    float logit =
        LogitForm<kCaps>(run).logit(load_one(run.logits, row * run.logits.stride + target));
    if constexpr (kSmooths) logit += run.smoothing * (total.mean - logit);
    run.losses[token] = total.log_rest - (logit - total.largest);
  }
  if (run.dlogits.data == nullptr) return;
  const int64_t in_vectors = vector_columns(run);
  store_gradients<kVectorElements, kCaps, kSmooths>(run, row, target, total, 0, in_vectors);
  store_gradients<1, kCaps, kSmooths>(run, row, target, total, in_vectors, run.vocab);
}

__global__ void sum_losses_kernel(const float* losses, int64_t tokens, TokenFactors factors,
                                  float* loss) {
  const bool is_each = factors.step > 0;
  float sum = 0.0F;
  for (int64_t t = threadIdx.x; t < tokens; t += blockDim.x)
    sum += is_each ? losses[t] * factors.data[t] : losses[t];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = is_each ? sum : sum * *factors.data;
}

// One block processes kListThreads tokens at a time: a token's position is the number of tokens
// found in earlier batches, lower warps and lower lanes.
__global__ void find_trained_kernel(FindTrainedRun run) {
  __shared__ int counts[kListThreads / kLanes];
  const unsigned warp = threadIdx.x / kLanes;
  const unsigned lane = threadIdx.x % kLanes;
  int found = 0;
  for (int64_t begin = 0; begin < run.tokens; begin += blockDim.x) {
    const int64_t token = begin + threadIdx.x;
    const bool trained = token < run.tokens && run.targets[token] >= 0;
    if (token < run.tokens && !trained) run.losses[token] = 0.0F;
    const unsigned votes = __ballot_sync(kWholeWarp, trained);
    if (lane == 0) counts[warp] = __popc(votes);
    __syncthreads();
    int place = found + __popc(votes & ((1U << lane) - 1U));
    for (unsigned i = 0; i < blockDim.x / kLanes; ++i) {
      place += i < warp ? counts[i] : 0;
      found += counts[i];
    }
    if (trained) run.numbers[place] = static_cast<int32_t>(token);
    __syncthreads();  // the counts must be read before the next batch overwrites them
  }
  device_check(found <= run.most);
  if (threadIdx.x == 0) *run.count = found;
}

template <int kCount>
struct GatherChunk {
  ChunkRowsRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t token = token_of(run.trained, row);
    const int64_t column = item * kCount;
    Elements<kCount> value{};
    if (token >= 0) value = load<kCount>(run.tokens, token * run.tokens.stride + column);
    store(run.chunk, row * run.chunk.stride + column, value);
  }
};

template <int kCount>
struct ScatterChunk {
  ChunkRowsRun run;
  __device__ void operator()(int64_t row, int64_t item) const {
    const int64_t token = token_of(run.trained, row);
    if (token < 0) return;
    const int64_t column = item * kCount;
    store(run.tokens, token * run.tokens.stride + column,
          load<kCount>(run.chunk, row * run.chunk.stride + column));
  }
};

// Whether each row begins at a multiple of 16 bytes; also true if data is null.
bool has_vector_rows(const DeviceRows& operand) {
  const int64_t row_bytes = operand.stride * element_bytes(operand.format);
  return reinterpret_cast<uintptr_t>(operand.data) % 16 == 0 && row_bytes % 16 == 0;
}

LaunchShape one_block(int64_t items) {
  LaunchShape shape;
  shape.block.x = row_threads(items, kListThreads);
  return shape;
}

}  // namespace

void softmax_rows(SoftmaxRun run, cudaStream_t stream) {
  if (run.rows == 0) return;
  run.vectors = has_vector_rows(run.logits) && has_vector_rows(run.dlogits);
  LaunchShape shape;
  shape.block.x = row_threads(run.vocab);
  shape.grid.x = static_cast<uint32_t>(run.rows);
  const bool is_plain = run.scale == 1.0F && run.softcap == 0.0F;
  const auto capped =
      run.smoothing > 0.0F ? softmax_kernel<true, true> : softmax_kernel<true, false>;
  const auto plain =
      run.smoothing > 0.0F ? softmax_kernel<false, true> : softmax_kernel<false, false>;
  launch(is_plain ? plain : capped, shape, stream, run);
}

void sum_losses(const float* losses, int64_t tokens, const TokenFactors& factors, float* loss,
                cudaStream_t stream) {
  launch(sum_losses_kernel, one_block(tokens), stream, losses, tokens, factors, loss);
}

void find_trained_rows(const FindTrainedRun& run, cudaStream_t stream) {
  launch(find_trained_kernel, one_block(run.tokens), stream, run);
}

void gather_chunk(const ChunkRowsRun& run, cudaStream_t stream) {
  over_elements<GatherChunk>(run, stream);
}

void scatter_chunk(const ChunkRowsRun& run, cudaStream_t stream) {
  over_elements<ScatterChunk>(run, stream);
}

}  // namespace snug::backends::cuda
