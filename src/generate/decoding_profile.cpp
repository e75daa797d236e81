#include "generate/decoding_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/console.h"
#include "base/error.h"
#include "engine/cached_forward.h"
#include "engine/engine.h"
#include "engine/questions/prompt.h"
#include "engine/request_shape.h"
#include "generate/recipe_request.h"
#include "plan/document/profile_lines.h"
#include "plan/time/calibration_file.h"
#include "plan/time/clock.h"
#include "plan/time/token_work.h"
#include "program/kinds/kind.h"
#include "runtime/execution/stopwatch.h"

namespace snug::generate {
namespace {

using program::ProgramName;

// Tokens decoded before measuring, until everything that happens only once is done; and tokens that
// are profiled.
constexpr int64_t kWarmTokens = 8;
constexpr int64_t kProfiledTokens = 16;

struct Rate {
  int64_t sequences = 0;
  int64_t new_tokens = 0;  // for each sequence
  engine::EngineTimes times;

  // The prompt yields the first token, so decoding makes one fewer.
  double step_seconds() const {
    return times.decode_seconds / static_cast<double>(times.decode_runs);
  }
  double tokens_per_second() const {
    return static_cast<double>(times.decode_tokens) / times.decode_seconds;
  }
};

Rate timed_rate(engine::Inference& inference, std::vector<engine::Request> requests) {
  const int64_t new_tokens = requests.front().max_new_tokens;
  for (engine::Request& request : requests)
    request.max_new_tokens = std::min(kWarmTokens, new_tokens);
  engine::Engine(inference).answers(requests);
  for (engine::Request& request : requests) request.max_new_tokens = new_tokens;
  engine::Engine engine(inference);
  engine.answers(requests);
  return {std::ssize(requests), new_tokens, engine.times()};
}

// Profiles one decoding step of all sequences, with their mean number of keys during the timed run.
class Profile {
 public:
  Profile(engine::Inference& inference, const formats::Recipe& recipe, const engine::Ids& prompt,
          int64_t tokens)
      : inference_(inference),
        program_(*inference.executor().job().find(ProgramName::decode)),
        stopwatch_(program_.operations.size(), inference.executor().backend()),
        expected_{.mean_segment_tokens =
                      static_cast<double>(prompt.size()) + static_cast<double>(tokens) / 2} {
    const plan::Rates rates = plan::rates_for(recipe, inference.executor().backend());
    basis_ = base::word_of(rates.basis());
    plan_lines(rates);
    run(prompt, tokens);
  }

  const std::string& basis() const { return basis_; }
  plan::TokenWork work() const { return plan::token_work(program_, expected_); }
  std::vector<plan::ProfileLine> lines() const {
    std::vector<plan::ProfileLine> found;
    for (const auto& named : lines_) found.push_back(named.second);
    plan::sort_lines(found);
    return found;
  }

 private:
  plan::RateKey key_of(size_t operation) const {
    return plan::rate_key({program_, program_.operations[operation]}, expected_);
  }

  void plan_lines(const plan::Rates& rates) {
    for (const plan::OperationTime& time : plan::simulate(program_, rates, expected_).operations) {
      const plan::RateKey key = key_of(static_cast<size_t>(time.operation));
      plan::ProfileLine& line = lines_[plan::line_of(key)];
      line.name = plan::line_of(key);
      line.count += 1;
      line.planned_seconds += time.seconds;
      line.work += key.work;
      line.unit = key.unit;
    }
  }

  void run(const engine::Ids& prompt, int64_t tokens) {
    engine::CachedForward forward(inference_.executor(), inference_.shape());
    for (int64_t sequence = 0; sequence < forward.sequences(); ++sequence)
      for (size_t first = 0; first < prompt.size();) {
        const size_t count =
            std::min(prompt.size() - first, static_cast<size_t>(forward.prefill_tokens()));
        const engine::SequencePart part{sequence, std::span(prompt).subspan(first, count)};
        forward.prefill({&part, 1});
        first += count;
      }
    const engine::Ids next(static_cast<size_t>(forward.sequences()), prompt.front());
    runtime::Executor& executor = inference_.executor();
    executor.set_observer(&stopwatch_);
    for (int64_t token = 0; token < tokens; ++token) {
      forward.decode(next);
      for (size_t i = 0; i < program_.operations.size(); ++i)
        lines_.at(plan::line_of(key_of(i))).seconds +=
            stopwatch_.seconds(i) / static_cast<double>(tokens);
    }
    executor.set_observer(nullptr);
  }

  engine::Inference& inference_;
  const program::Program& program_;
  runtime::Stopwatch stopwatch_;
  program::ExpectedBounds expected_;
  std::string basis_;
  std::map<std::string, plan::ProfileLine> lines_;
};

}  // namespace

int profile_decoding(const formats::Recipe& recipe, bool json) {
  const models::ModelSource model = runtime::open_model(recipe);
  if (model.config.has_encoder())
    recipe.fail("model", "has an encoder, for which this measurement is not built");
  if (recipe.ids.empty())
    recipe.fail("ids", "is missing: the prompt as ids, such as ids=\"1 5 9\"");
  const int64_t sequences = recipe.is_given("batch") ? recipe.batch : 1;
  const engine::Ids prompt = engine::recipe_ids(recipe, model.config);
  const auto prompt_tokens = std::ssize(prompt);
  // No id stops the answers, so all have the same length.
  const engine::Request request{
      .prompt = prompt,
      .max_new_tokens = engine::new_tokens(recipe, model.config, prompt_tokens),
      .sampling = recipe_sampling(recipe)};
  if (request.max_new_tokens < 2)
    recipe.fail("max_new_tokens", "must be 2 at least: the first token is the prompt's");
  std::vector<engine::Request> requests(static_cast<size_t>(sequences), request);
  for (size_t i = 0; i < requests.size(); ++i) requests[i].sample = static_cast<int64_t>(i);
  engine::Inference inference(recipe, model, engine::shape_for(requests, sequences, model.config));
  const Rate rate = timed_rate(inference, requests);
  const Profile profile(inference, recipe, prompt,
                        std::min(kProfiledTokens, request.max_new_tokens - 1));
  const plan::TokenWork work = profile.work();
  if (json) {
    base::print("{}\n",
                nlohmann::json{{"libraries", inference.executor().backend().library_versions()},
                               {"sequences", sequences},
                               {"prompt_tokens", prompt_tokens},
                               {"new_tokens", rate.new_tokens},
                               {"prefill_seconds", rate.times.prefill_seconds},
                               {"decode_seconds", rate.times.decode_seconds},
                               {"tokens_per_second", rate.tokens_per_second()},
                               {"planned_basis", profile.basis()},
                               {"launches", work.launches},
                               {"layer_launches", work.layer_launches},
                               {"token_bytes", work.bytes},
                               {"device", inference.device_json()},
                               {"operations", plan::json_of(profile.lines())}}
                    .dump(2));
    return 0;
  }
  base::print(
      "{}a token{} takes {:.3f} ms ({:.1f} tokens/s), the prompt of {} {:.3f} ms; planned by {} "
      "rates\na token is {:.0f} launches, {:.1f} in a layer, and {:.0f} bytes\n",
      plan::text_of(profile.lines()),
      sequences == 1 ? "" : fmt::format(" of each of {} sequences", sequences),
      rate.step_seconds() * 1e3, rate.tokens_per_second(), prompt_tokens,
      rate.times.prefill_seconds * 1e3, profile.basis(), work.launches, work.layer_launches,
      work.bytes);
  return 0;
}

}  // namespace snug::generate
