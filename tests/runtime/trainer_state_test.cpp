#include "runtime/saving/trainer_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/temporary_folder.h"

namespace snug::runtime {
namespace {

using testing::contains;
using testing::user_error_of;

TrainerState some_state() {
  TrainerState state;
  state.step = 128;
  state.max_steps = 500;
  state.epoch = 1.0 / 3.0;
  state.rows_consumed = 4096;
  state.rows_per_step = 36;
  state.resumed_step = 28;
  state.resumed_rows = 496;
  state.seed = -9'007'199'254'740'993;  // not a double
  state.trained_tokens = 1'234'567;
  state.total_tokens = 7'654'321;
  state.skipped_steps = 3;
  state.train_seconds = 0.1 + 0.2;
  state.identity = {.fixed = {{"lora_r", "16"}, {"model", "abc"}},
                    .free = {{"backend", "cpu"}, {"learning_rate", "0.0002"}}};
  state.files = {{"model.safetensors", 1 << 20}, {"config.json", 612}};
  state.checksums = "0123456789abcdef";
  return state;
}

TEST(TrainerState, ReadsBackWithTheSameBits) {
  const TrainerState state = some_state();
  EXPECT_EQ(parse_trainer_state(to_json(state), "f"), state);
  TrainerState fresh;
  EXPECT_EQ(parse_trainer_state(to_json(fresh), "f"), fresh);
}

TEST(TrainerState, MissingAndWrongKeysAreNamed) {
  const nlohmann::json whole = nlohmann::json::parse(to_json(some_state()));
  for (const auto& [key, unused] : whole.items()) {
    nlohmann::json document = whole;
    document.erase(key);
    const std::string text =
        user_error_of([&] { parse_trainer_state(document.dump(), "runs/x/trainer_state.json"); });
    // Checkpoints of earlier versions have none of these: the checksum tells that one is gone.
    const bool is_newer = key == "skipped_steps" || key == "history" || key == "only_model";
    EXPECT_TRUE(contains(text, is_newer ? "'checksum'" : key));
    EXPECT_TRUE(contains(text, "runs/x/trainer_state.json"));
  }
}

// Any change to the text is refused, or says the same.
TEST(TrainerState, IsNotBelievedWhenItWasChanged) {
  const TrainerState state = some_state();
  const std::string text = to_json(state);
  for (size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string changed = text;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    try {
      ASSERT_EQ(parse_trainer_state(changed, "f"), state) << changed;
    } catch (const base::UserError&) {
    }
  }
  std::string later = text;
  later.replace(later.find("\"step\": 128"), 11, "\"step\": 129");
  EXPECT_TRUE(contains(user_error_of([&] { parse_trainer_state(later, "f"); }), "was changed"));
}

// Even where the checksum is right: numbers that no run has together.
TEST(TrainerState, ItsNumbersBelongTogether) {
  const auto refusal = [](const auto& change) {
    TrainerState state = some_state();
    change(state);
    return user_error_of([&] { parse_trainer_state(to_json(state), "f"); });
  };
  using State = TrainerState;
  EXPECT_EQ(refusal([](State&) {}), "(no error)");
  EXPECT_TRUE(contains(refusal([](State& s) { s.step = 129; }), "rows_consumed"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.step = 501; }), "more than max_steps"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.step = -1; }), "step"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.rows_consumed = -1; }), "expected a count"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.rows_consumed = int64_t{1} << 40; }), "steps of"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.rows_consumed = int64_t{1} << 62; }), "a count"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.rows_per_step = 0; }), "rows_consumed"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.resumed_step = 129; }), "resumed_step"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.resumed_rows = 27; }), "resumed_rows"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.trained_tokens = 8'000'000; }), "total_tokens"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.epoch = -0.5; }), "epoch"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.train_seconds = -1; }), "train_seconds"));
  EXPECT_TRUE(contains(refusal([](State& s) { s.skipped_steps = s.step + 1; }), "skipped_steps"));
}

TEST(TrainerState, StatesOfOtherTrainersAndOfLaterSchemas) {
  EXPECT_TRUE(contains(
      user_error_of([] { parse_trainer_state(R"({"global_step": 5, "log_history": []})", "f"); }),
      "not a checkpoint of Snug"));
  nlohmann::json later = nlohmann::json::parse(to_json(some_state()));
  later["schema_version"] = TrainerState::kSchemaVersion + 1;
  EXPECT_TRUE(
      contains(user_error_of([&] { parse_trainer_state(later.dump(), "f"); }), "schema_version"));
  EXPECT_TRUE(contains(user_error_of([] { parse_trainer_state("{\"step\": 1", "f"); }), "f"));
}

TEST(RunIdentity, NamesEveryDifference) {
  const RunIdentity saved = some_state().identity;
  EXPECT_TRUE(differences(saved, saved).fixed.empty());
  EXPECT_TRUE(differences(saved, saved).free.empty());
  RunIdentity now = saved;
  now.fixed["lora_r"] = "8";
  now.fixed.erase("model");
  now.free["learning_rate"] = "0.0001";
  now.free["recompute"] = "layer";
  const Differences found = differences(saved, now);
  EXPECT_EQ(found.fixed,
            (std::vector<std::string>{"lora_r was 16 and is 8", "model was abc and is not set"}));
  EXPECT_EQ(found.free, (std::vector<std::string>{"learning_rate was 0.0002 and is 0.0001",
                                                  "recompute was not set and is layer"}));
}

}  // namespace
}  // namespace snug::runtime
