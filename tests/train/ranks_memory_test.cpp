// Each rank of a job takes the memory that was planned for it: its resident peak, from its first
// instruction to its last, lies between 97 % of the plan and 50 MiB more than it.
#include <nlohmann/json.hpp>

#include "launched_ranks.h"

namespace snug::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMebibyte = 1 << 20;

// 25 million weights, so that a share of them counts.
constexpr const char* kShape = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512,
  "intermediate_size": 1408, "num_hidden_layers": 6, "num_attention_heads": 8,
  "num_key_value_heads": 2, "vocab_size": 16384, "max_position_embeddings": 512,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu",
  "initializer_range": 0.02, "bos_token_id": 0, "eos_token_id": 0})";

// Hardly any weights, in so many tensors that lists of them count.
constexpr const char* kManyLayers = R"({
  "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32,
  "intermediate_size": 64, "num_hidden_layers": 400, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 4096, "max_position_embeddings": 512,
  "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu",
  "initializer_range": 0.02, "bos_token_id": 0, "eos_token_id": 0})";

struct Job {
  std::string name;
  int ranks = 2;
  std::vector<std::string> words;
  const char* shape = kShape;
};

std::ostream& operator<<(std::ostream& stream, const Job& job) { return stream << job.name; }

int64_t planned_bytes(const fs::path& output) {
  const Json plan = Json::parse(cli::contents_of(output / "plan.json"));
  return plan["resident"]["peak_bytes"].get<int64_t>();
}

class RanksMemory : public ::testing::TestWithParam<Job> {
 protected:
  RanksMemory() {
    folder_.write("model/config.json", GetParam().shape);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      fs::copy(fs::path("examples/wordnet") / name, folder_ / "model");
  }
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    return cli::joined(
        {SNUG_BINARY, "train", "model=" + (folder_ / "model").string(),
         "data=examples/wordnet/train.jsonl", "init=random", "max_length=64", "max_steps=2",
         "save_steps=1", "save_total_limit=1", "threads=1", "output_dir=" + output().string()},
        more);
  }
  fs::path output() const { return folder_ / "run"; }

 private:
  testing::TemporaryFolder folder_;
};

TEST_P(RanksMemory, IsWhatWasPlanned) {
  const Job& job = GetParam();
  const std::vector<int64_t> peaks = testing::peaks_of_ranks(job.ranks, words(job.words));
  ASSERT_EQ(peaks.size(), static_cast<size_t>(job.ranks));
  if (HasFailure()) return;
  const int64_t planned = planned_bytes(output());
  EXPECT_GT(planned, 100 * kMebibyte) << "too little to tell a share from the rest";
  for (size_t rank = 0; rank < peaks.size(); ++rank) {
    RecordProperty(fmt::format("peak_{}", rank), std::to_string(peaks[rank]));
    fmt::print("rank {}: planned {:.1f} MiB, peak {:.1f} MiB\n", rank,
               static_cast<double>(planned) / kMebibyte,
               static_cast<double>(peaks[rank]) / kMebibyte);
    EXPECT_LE(peaks[rank], planned + 50 * kMebibyte) << "rank " << rank;
    EXPECT_GE(static_cast<double>(peaks[rank]), 0.97 * static_cast<double>(planned))
        << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, RanksMemory,
    ::testing::Values(Job{"full_shard_full", 4, {"method=full", "strategy=full_shard"}},
                      Job{"full_shard_of_many_tensors",
                          8,
                          {"method=full", "strategy=full_shard", "shard_threshold=100",
                           "recompute=layer"},
                          kManyLayers},
                      Job{"zero2_full", 2, {"method=full", "strategy=zero2"}},
                      Job{"ddp_lora", 2, {"method=lora", "strategy=ddp"}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace snug::train

int main(int argc, char** argv) {
  if (const int code = snug::testing::measure_if_asked(argc, argv); code >= 0) return code;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
