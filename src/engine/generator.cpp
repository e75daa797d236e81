#include "engine/generator.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/seconds_since.h"
#include "engine/request_shape.h"

namespace snug::engine {
namespace {

using Clock = std::chrono::steady_clock;

int64_t size_of(const Ids& ids) { return static_cast<int64_t>(ids.size()); }

int64_t in_steps(int64_t tokens) {
  constexpr int64_t kStep = plan::kMinPrefillTokens;
  return (tokens + kStep - 1) / kStep * kStep;
}

}  // namespace

// Prompts that are continued in parallel: prompt `first + s` is sequence s.
struct Generator::Group {
  std::span<const Ids> prompts;
  int64_t first = 0;
  const GenerationOptions& options;
  const OnToken& on_token;
  Sampler sampler;
  std::span<Generation> results;
  Ids next;  // (sequences) the token that each sequence appends next, or kIdle
  std::vector<float> penalized{};  // (vocabulary), scratch
};

plan::InferenceShape shape_for(std::span<const Ids> prompts, const GenerationOptions& options,
                               int64_t batch, PromptReader reader) {
  plan::InferenceShape shape;
  shape.candidates = candidates_of(options.sampling);
  shape.sequences = std::clamp<int64_t>(static_cast<int64_t>(prompts.size()), 1, batch);
  int64_t longest = 1;
  int64_t group_tokens = 0;
  int64_t most_tokens = 1;
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (i % static_cast<size_t>(shape.sequences) == 0) group_tokens = 0;
    group_tokens += size_of(prompts[i]);
    most_tokens = std::max(most_tokens, group_tokens);
    longest = std::max(longest, size_of(prompts[i]));
  }
  const int64_t prompt_tokens = std::min(plan::kPrefillTokens, in_steps(most_tokens));
  if (reader != PromptReader::decoder) {
    // An encoder reads the whole prompt, and the decoder begins with a single token, unless it
    // reads the prompt too.
    const bool both = reader == PromptReader::both;
    shape.capacity = {options.max_new_tokens + (both ? longest : 0), longest};
    shape.prefill_tokens =
        both ? std::min(plan::kPrefillTokens, in_steps(most_tokens + shape.sequences))
             : in_steps(shape.sequences);
    shape.encoder_tokens = std::max(in_steps(longest), prompt_tokens);
    return shape;
  }
  // The last new token is returned but never fed back into the model.
  shape.capacity = longest + options.max_new_tokens - 1;
  shape.prefill_tokens = prompt_tokens;
  return shape;
}

PromptReader prompt_reader(const models::ModelConfig& model) {
  if (!model.has_encoder()) return PromptReader::decoder;
  return model.repeats_prompt ? PromptReader::both : PromptReader::encoder;
}

void check_ids(std::span<const int32_t> ids, const models::ModelConfig& model, const char* what) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || ids[i] >= model.vocab_size)
      base::throw_user_error(
          "token {} of {} is {}, but the model's vocabulary has {} ids, 0 to {}; use the "
          "tokenizer that belongs to the model",
          i + 1, what, ids[i], model.vocab_size, model.vocab_size - 1);
}

void Generator::check(std::span<const Ids> prompts, const GenerationOptions& options) const {
  const base::PerStream<int64_t>& capacity = forward_.shape().capacity;
  const auto fits = [&](int64_t prompt) {
    if (!capacity.has_encoder()) return prompt + options.max_new_tokens - 1 <= capacity.decoder();
    const int64_t repeated = model_.repeats_prompt ? prompt : 0;
    return prompt <= capacity[base::TokenStream::encoder] &&
           repeated + options.max_new_tokens <= capacity.decoder();
  };
  const int64_t asked = candidates_of(options.sampling);
  if (const int64_t made = forward_.shape().candidates; made > 0 && asked != made)
    base::throw_user_error(
        "the sampling asks for {} likeliest tokens, and the programs look for {}: plan with the "
        "temperature, top_k and repetition_penalty that are sampled with",
        asked, made);
  for (const Ids& prompt : prompts) {
    if (prompt.empty())
      base::throw_user_error("the prompt is empty, and a model needs a token to continue from");
    check_ids(prompt, model_, "the prompt");
    if (!fits(size_of(prompt)))
      base::throw_user_error(
          "a prompt of {} tokens and {} new ones do not fit in a cache of {} for each sequence; "
          "shorten the prompt or lower max_new_tokens",
          prompt.size(), options.max_new_tokens, capacity.sum());
  }
}

std::vector<Generation> Generator::run(std::span<const Ids> prompts,
                                       const GenerationOptions& options, const OnToken& on_token) {
  check(prompts, options);
  times_ = {};
  std::vector<Generation> results(prompts.size());
  const auto sequences = static_cast<size_t>(forward_.sequences());
  for (size_t first = 0; first < prompts.size(); first += sequences) {
    const size_t count = std::min(sequences, prompts.size() - first);
    Group group{.prompts = prompts.subspan(first, count),
                .first = static_cast<int64_t>(first),
                .options = options,
                .on_token = on_token,
                .sampler = Sampler(options.sampling),
                .results = std::span(results).subspan(first, count),
                .next = Ids(sequences, CachedForward::kIdle)};
    const Clock::time_point begin = Clock::now();
    if (forward_.shape().capacity.has_encoder())
      prefill_encoder(group);
    else
      prefill(group);
    const Clock::time_point middle = Clock::now();
    decode(group);
    times_.prefill_seconds += std::chrono::duration<double>(middle - begin).count();
    times_.decode_seconds += base::seconds_since(middle);
  }
  return results;
}

// Prompts fill the chunks one after the other; a prompt that does not fit is continued in the next
// chunk.
void Generator::prefill(Group& group) {
  forward_.release_all();
  size_t prompt = 0;
  size_t done = 0;  // tokens of that prompt already appended
  while (prompt < group.prompts.size()) {
    std::vector<SequencePart> parts;
    std::vector<int64_t> complete;
    auto room = static_cast<size_t>(forward_.prefill_tokens());
    while (room > 0 && prompt < group.prompts.size()) {
      const std::span<const int32_t> ids = group.prompts[prompt];
      const size_t count = std::min(room, ids.size() - done);
      parts.push_back({static_cast<int64_t>(prompt), ids.subspan(done, count)});
      room -= count;
      done += count;
      if (done < ids.size()) break;
      complete.push_back(static_cast<int64_t>(prompt++));
      done = 0;
    }
    forward_.prefill(parts);
    for (const int64_t sequence : complete) take_token(group, sequence);
  }
}

// Each chunk encodes as many whole prompts as fit, and their decoders begin. A decoder that repeats
// the prompt continues in the next chunk where the prompt does not fit.
void Generator::prefill_encoder(Group& group) {
  forward_.release_all();
  std::vector<Ids> read;
  for (const Ids& ids : group.prompts) read.push_back(read_by_decoder(ids, model_));
  size_t prompt = 0;
  size_t done = 0;  // tokens that its decoder has read
  while (prompt < group.prompts.size()) {
    std::vector<SequencePart> parts;
    std::vector<int64_t> complete;
    auto room = static_cast<size_t>(forward_.prefill_tokens());
    int64_t encoder_room = forward_.encoder_tokens();
    while (room > 0 && prompt < group.prompts.size()) {
      const std::span<const int32_t> ids =
          done == 0 ? std::span<const int32_t>(group.prompts[prompt]) : std::span<const int32_t>();
      if (std::ssize(ids) > encoder_room) break;
      encoder_room -= std::ssize(ids);
      const size_t count = std::min(room, read[prompt].size() - done);
      const auto words = std::span<const int32_t>(read[prompt]).subspan(done, count);
      parts.push_back({static_cast<int64_t>(prompt), words, ids});
      room -= count;
      done += count;
      if (done < read[prompt].size()) break;
      complete.push_back(static_cast<int64_t>(prompt++));
      done = 0;
    }
    forward_.prefill(parts);
    for (const int64_t sequence : complete) take_token(group, sequence);
  }
}

void Generator::decode(Group& group) {
  const auto is_idle = [](int32_t id) { return id == CachedForward::kIdle; };
  while (!std::all_of(group.next.begin(), group.next.end(), is_idle)) {
    forward_.decode(group.next);
    for (int64_t sequence = 0; sequence < static_cast<int64_t>(group.prompts.size()); ++sequence)
      if (!is_idle(group.next[static_cast<size_t>(sequence)])) take_token(group, sequence);
  }
}

// Chooses a sequence's next token from the logits of the last run.
void Generator::take_token(Group& group, int64_t sequence) {
  const auto index = static_cast<size_t>(sequence);
  const int64_t prompt = group.first + sequence;
  Generation& result = group.results[index];
  const Draw draw{prompt, size_of(result.ids)};
  const int32_t id = forward_.has_candidates()
                         ? group.sampler.pick(forward_.likeliest(sequence), draw)
                         : group.sampler.pick(logits(group, sequence), draw);
  result.ids.push_back(id);
  const std::vector<int32_t>& stop_ids = group.options.stop_ids;
  result.stopped = std::find(stop_ids.begin(), stop_ids.end(), id) != stop_ids.end();
  if (group.on_token && group.on_token(prompt, id)) result.stopped = true;
  const bool ends = result.stopped || size_of(result.ids) >= group.options.max_new_tokens;
  group.next[index] = ends ? CachedForward::kIdle : id;
}

// The logits of the last run, with the repetition penalty applied for the tokens of the sequence.
std::span<const float> Generator::logits(Group& group, int64_t sequence) const {
  const std::span<const float> all = forward_.logits(sequence);
  const double penalty = group.options.sampling.repetition_penalty;
  if (penalty == 1) return all;
  const auto index = static_cast<size_t>(sequence);
  Ids seen = read_by_decoder(group.prompts[index], model_);
  const Ids& made = group.results[index].ids;
  seen.insert(seen.end(), made.begin(), made.end());
  penalize_repetition(all, seen, penalty, group.penalized);
  return group.penalized;
}

}  // namespace snug::engine
