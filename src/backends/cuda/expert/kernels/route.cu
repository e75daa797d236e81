// A warp chooses the experts of a token; a block places the rows of one expert: it counts the
// choices of earlier experts and of its own, then goes through all choices again, in order, and
// numbers its own. Choices are few bytes, which all blocks read from the cache, and nothing depends
// on the order of blocks.
//
// Where experts are balanced, a warp handles several tokens, one after another, and adds up their
// contributions to each expert. A block writes the sums of its warps, and the block that places an
// expert's rows adds those of all blocks, always in the same order.
#include "backends/cuda/expert/kernels/route.h"

#include "backends/cuda/kernels/element.cuh"
#include "backends/cuda/kernels/reduce.cuh"

namespace snug::backends::cuda {
namespace {

constexpr uint32_t kTokenThreads = 128;
constexpr uint32_t kTokenWarps = kTokenThreads / kLanes;
static_assert(kTokenWarps == kRouteBlockWarps);
constexpr uint32_t kPlaceThreads = 256;
constexpr uint32_t kPlaceWarps = kPlaceThreads / kLanes;

// The token that this warp handles.
__device__ int64_t token_of_warp() {
  return int64_t{blockIdx.x} * kTokenWarps + threadIdx.x / kLanes;
}

// Makes scores of a token's logits, by the statistics of their softmax; all lanes have them.
struct TokenScores {
  bool sigmoid;
  float most;
  float inverse_sum;
  __device__ float of(float logit) const {
    return sigmoid ? 1.0F / (1.0F + expf(-logit)) : expf(logit - most) * inverse_sum;
  }
};

__device__ TokenScores scores_of(const DeviceRows& logits, int64_t token, int64_t experts,
                                 bool sigmoid) {
  if (sigmoid) return {true, 0.0F, 0.0F};
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  float most = -INFINITY;
  for (int64_t e = lane; e < experts; e += kLanes)
    most = fmaxf(most, load_one(logits, token * logits.stride + e));
  most = warp_max(most);
  float sum = 0.0F;
  for (int64_t e = lane; e < experts; e += kLanes)
    sum += expf(load_one(logits, token * logits.stride + e) - most);
  return {false, most, 1.0F / warp_sum(sum)};
}

// An expert or a group of experts, and what it is chosen by.
struct Candidate {
  float value;
  int32_t number;  // -1 if there is no candidate
};

// The candidate with the larger value; of equal ones the one with the lower number. A
// candidate without a number loses.
__device__ Candidate better(const Candidate& a, const Candidate& b) {
  if (a.number < 0) return b;
  if (b.number < 0) return a;
  if (b.value > a.value) return b;
  return !(a.value > b.value) && b.number < a.number ? b : a;
}

__device__ Candidate best_of_warp(Candidate mine) {
  for (int lanes = kLanes / 2; lanes > 0; lanes /= 2) {
    const Candidate other{__shfl_xor_sync(kWholeWarp, mine.value, lanes),
                          __shfl_xor_sync(kWholeWarp, mine.number, lanes)};
    // Both lanes must compare in the same order: the lower lane's candidate comes first.
    mine = (threadIdx.x & static_cast<unsigned>(lanes)) == 0 ? better(mine, other)
                                                             : better(other, mine);
  }
  return mine;
}

__device__ bool is_taken(const int32_t* ids, int64_t count, int64_t expert) {
  for (int64_t i = 0; i < count; ++i)
    if (ids[i] == expert) return true;
  return false;
}

// Whether the token belongs to a segment. All lanes take part.
__device__ bool is_counted(const SegmentList& segments, int64_t token) {
  bool is_here = false;
  for (int64_t i = threadIdx.x % kLanes; i < segments.count; i += kLanes)
    is_here |= segments.bounds[2 * i] <= token && token < segments.bounds[2 * i + 1];
  return __ballot_sync(kWholeWarp, is_here) != 0;
}

// What an expert of a token is chosen by.
__device__ float choice_value(const RouteRun& run, int64_t token, int64_t expert,
                              const TokenScores& scores) {
  const float logit = load_one(run.logits, token * run.logits.stride + expert);
  if (!run.by_score) return logit;
  return scores.of(logit) + (run.correction == nullptr ? 0.0F : run.correction[expert]);
}

// The sum of the two largest values of a group's experts.
__device__ float best_two(const RouteRun& run, int64_t token, int64_t group,
                          const TokenScores& scores) {
  const int64_t width = run.experts / run.groups;
  float first = -INFINITY;
  float second = -INFINITY;
  for (int64_t e = group * width; e < (group + 1) * width; ++e) {
    const float value = choice_value(run, token, e, scores);
    second = fmaxf(second, fminf(first, value));
    first = fmaxf(first, value);
  }
  return first + second;
}

// A bit for each group whose experts can be chosen.
__device__ uint64_t chosen_groups(const RouteRun& run, int64_t token, const TokenScores& scores) {
  if (run.groups == 1) return 1;
  uint64_t chosen = 0;
  for (int64_t i = 0; i < run.chosen_groups; ++i) {
    Candidate mine{0.0F, -1};
    for (int64_t group = threadIdx.x % kLanes; group < run.groups; group += kLanes)
      if ((chosen >> group & 1) == 0)
        mine = better(mine, {best_two(run, token, group, scores), static_cast<int32_t>(group)});
    chosen |= uint64_t{1} << best_of_warp(mine).number;
  }
  return chosen;
}

// Chooses the experts of a token; afterwards all lanes may read its ids.
__device__ void choose(const RouteRun& run, int64_t token, const TokenScores& scores) {
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  const uint64_t groups = chosen_groups(run, token, scores);
  const int64_t width = run.experts / run.groups;
  int32_t* const ids = run.ids + token * run.k;
  float* const weights = run.weights + token * run.k;
  float sum = run.epsilon;
  for (int64_t i = 0; i < run.k; ++i) {
    Candidate mine{0.0F, -1};
    for (int64_t e = lane; e < run.experts; e += kLanes)
      if ((groups >> (e / width) & 1) != 0 && !is_taken(ids, i, e))
        mine = better(mine, {choice_value(run, token, e, scores), static_cast<int32_t>(e)});
    const Candidate best = best_of_warp(mine);
    if (lane == 0) ids[i] = best.number;
    __syncwarp();
    const float likely = scores.of(load_one(run.logits, token * run.logits.stride + best.number));
    sum += likely;
    if (lane == 0) weights[i] = likely;
  }
  if (lane != 0) return;
  for (int64_t i = 0; i < run.k; ++i)
    weights[i] = (run.normalize ? weights[i] / sum : weights[i]) * run.scale;
}

__global__ void __launch_bounds__(kTokenThreads) choose_kernel(RouteRun run) {
  wait_for_kernels_before();
  const int64_t token = token_of_warp();
  if (token >= run.tokens) return;
  choose(run, token, scores_of(run.logits, token, run.experts, run.sigmoid));
}

__global__ void __launch_bounds__(kTokenThreads) choose_and_add_kernel(RouteRun run) {
  wait_for_kernels_before();
  RouteLoad* const of_warps = shared_memory<RouteLoad>();
  const auto lane = static_cast<int64_t>(threadIdx.x % kLanes);
  RouteLoad* const mine = of_warps + threadIdx.x / kLanes * run.experts;
  // A lane handles every 32nd expert, here and below.
  for (int64_t e = lane; e < run.experts; e += kLanes) mine[e] = {0, 0.0F};
  for (int64_t i = threadIdx.x / kLanes; i < kRouteBlockTokens; i += kTokenWarps) {
    const int64_t token = int64_t{blockIdx.x} * kRouteBlockTokens + i;
    if (token >= run.tokens) break;
    const TokenScores scores = scores_of(run.logits, token, run.experts, false);
    choose(run, token, scores);
    if (!is_counted(run.segments, token)) continue;
    for (int64_t e = lane; e < run.experts; e += kLanes)
      mine[e].sum += scores.of(load_one(run.logits, token * run.logits.stride + e));
    for (int64_t choice = 0; choice < run.k; ++choice) {
      const int64_t expert = run.ids[token * run.k + choice];
      if (expert % kLanes == lane) ++mine[expert].count;
    }
  }
  __syncthreads();
  RouteLoad* const loads = run.loads + int64_t{blockIdx.x} * run.experts;
  for (int64_t e = threadIdx.x; e < run.experts; e += kTokenThreads) {
    RouteLoad all{0, 0.0F};
    for (uint32_t warp = 0; warp < kTokenWarps; ++warp) {
      all.count += of_warps[warp * run.experts + e].count;
      all.sum += of_warps[warp * run.experts + e].sum;
    }
    loads[e] = all;
  }
}

// The number of threads before this one, in earlier warps and lower lanes, for which the condition
// holds; `all` becomes the number in the block.
__device__ int count_before(bool condition, int& all) {
  __shared__ int counts[kPlaceWarps];
  const unsigned votes = __ballot_sync(kWholeWarp, condition);
  const unsigned warp = threadIdx.x / kLanes;
  const unsigned lane = threadIdx.x % kLanes;
  __syncthreads();  // threads may still be reading for an earlier call
  if (lane == 0) counts[warp] = __popc(votes);
  __syncthreads();
  int before = 0;
  all = 0;
  for (unsigned i = 0; i < kPlaceWarps; ++i) {
    before += i < warp ? counts[i] : 0;
    all += counts[i];
  }
  return before + __popc(votes & ((1U << lane) - 1U));
}

__global__ void __launch_bounds__(kPlaceThreads) place_kernel(RouteRun run) {
  wait_for_kernels_before();
  const auto expert = static_cast<int32_t>(blockIdx.x);
  const int64_t rows = run.tokens * run.k;
  int32_t begin = 0;
  for (int64_t first = 0; first < rows; first += kPlaceThreads) {
    const int64_t i = first + threadIdx.x;
    int all = 0;
    count_before(i < rows && run.ids[i] < expert, all);
    begin += all;
  }
  int32_t end = begin;
  for (int64_t first = 0; first < rows; first += kPlaceThreads) {
    const int64_t i = first + threadIdx.x;
    const bool is_own = i < rows && run.ids[i] == expert;
    int all = 0;
    const int before = count_before(is_own, all);
    if (is_own) run.places[i] = end + before;
    end += all;
  }
  // Counts are exact as floats up to 2^24 tokens.
  float load[2] = {0.0F, 0.0F};
  if (run.counts != nullptr) {
    for (int64_t i = threadIdx.x; i < ceil_div(run.tokens, kRouteBlockTokens); i += kPlaceThreads) {
      const RouteLoad of_block = run.loads[i * run.experts + expert];
      load[0] += static_cast<float>(of_block.count);
      load[1] += of_block.sum;
    }
    block_sums(load);
  }
  if (threadIdx.x != 0) return;
  run.bounds[2 * expert] = begin;
  run.bounds[2 * expert + 1] = end;
  if (run.counts == nullptr) return;
  run.counts[expert] = static_cast<int32_t>(load[0]);
  run.sums[expert] = load[1];
}

// dlogits = p (dweights - sum(p dweights)), where p are the probabilities over all experts, or over
// only the chosen ones, then normalised to sum to one. In segments the gradient of the sums adds p
// (dsums - sum(p dsums)), with p over all experts.
// Sigmoids have a factor 1 - p more, and depend on one another only where they are normalised.
__global__ void __launch_bounds__(kTokenThreads) route_grad_kernel(RouteGradRun run) {
  wait_for_kernels_before();
  const int64_t token = token_of_warp();
  if (token >= run.tokens) return;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  const TokenScores scores = scores_of(run.logits, token, run.experts, run.sigmoid);
  const int32_t* const ids = run.ids + token * run.k;
  const float* const dweights = run.dweights + token * run.k;
  const auto likely = [&](int64_t e) {
    return scores.of(load_one(run.logits, token * run.logits.stride + e));
  };
  float sum = 0.0F;
  float dot = 0.0F;
  for (int64_t i = 0; i < run.k; ++i) {
    sum += likely(ids[i]);
    dot += likely(ids[i]) * dweights[i] * run.scale;
  }
  const bool depends_on_all = !run.normalize && !run.sigmoid;
  if (!run.normalize) sum = 1.0F;
  if (!run.normalize && run.sigmoid) dot = 0.0F;
  const bool balances = run.dsums != nullptr && is_counted(run.segments, token);
  float mean = 0.0F;
  if (balances) {
    for (int64_t e = lane; e < run.experts; e += kLanes) mean += likely(e) * run.dsums[e];
    mean = warp_sum(mean);
  }
  for (int64_t e = lane; e < run.experts; e += kLanes) {
    float dweight = 0.0F;
    bool is_chosen = false;
    for (int64_t i = 0; i < run.k; ++i)
      if (ids[i] == e) {
        dweight = dweights[i] * run.scale;
        is_chosen = true;
      }
    float gradient = is_chosen || depends_on_all ? likely(e) / sum * (dweight - dot / sum) : 0.0F;
    if (run.sigmoid) gradient *= 1.0F - likely(e);
    if (balances) gradient += likely(e) * (run.dsums[e] - mean);
    store_one(run.dlogits, token * run.dlogits.stride + e, gradient);
  }
}

LaunchShape token_shape(int64_t tokens, int64_t tokens_per_block = kTokenWarps) {
  LaunchShape shape;
  shape.block.x = kTokenThreads;
  shape.grid.x = static_cast<uint32_t>(ceil_div(tokens, tokens_per_block));
  shape.begins_early = true;
  return shape;
}

void choose_for_all(const RouteRun& run, cudaStream_t stream) {
  if (run.counts == nullptr) return launch(choose_kernel, token_shape(run.tokens), stream, run);
  LaunchShape shape = token_shape(run.tokens, kRouteBlockTokens);
  shape.shared_bytes = static_cast<int32_t>(route_shared_bytes(run.experts));
  launch(choose_and_add_kernel, shape, stream, run);
}

}  // namespace

void route(const RouteRun& run, cudaStream_t stream) {
  if (run.tokens > 0) choose_for_all(run, stream);
  LaunchShape shape;
  shape.block.x = kPlaceThreads;
  shape.grid.x = static_cast<uint32_t>(run.experts);
  shape.begins_early = true;
  launch(place_kernel, shape, stream, run);
}

void route_grad(const RouteGradRun& run, cudaStream_t stream) {
  if (run.tokens > 0) launch(route_grad_kernel, token_shape(run.tokens), stream, run);
}

}  // namespace snug::backends::cuda
