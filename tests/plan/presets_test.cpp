// The parameters of every built-in shape against the counts that were published.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/config/config_keys.h"
#include "models/families/families.h"
#include "models/weights.h"

namespace snug::plan {
namespace {

// From the models' pages and the sizes of their files. StableLM-Base-Alpha's pages count norms and
// biases once for each rank that trained it, three times more for 3b and once more for 7b.
const std::map<std::string, int64_t> kPublished{{"codellama-13b", 13016028160},
                                                {"codellama-34b", 33743970304},
                                                {"llama-13b", 13015864320},
                                                {"llama-2-13b", 13015864320},
                                                {"llama-2-70b", 68976648192},
                                                {"llama-2-7b", 6738415616},
                                                {"llama-3-8b", 8030261248},
                                                {"llama-3.1-70b", 70553706496},
                                                {"llama-3.1-8b", 8030261248},
                                                {"llama-3.2-1b", 1235814400},
                                                {"llama-3.2-3b", 3212749824},
                                                {"llama-30b", 32528943616},
                                                {"llama-65b", 65285660672},
                                                {"llama-7b", 6738415616},
                                                {"smollm2-135m", 134515008},
                                                {"smollm2-360m", 361821120},
                                                {"tinyllama-1.1b", 1100048384},
                                                {"yi-34b", 34388917248},
                                                {"mistral-7b-v0.1", 7241732096},
                                                {"mistral-7b-v0.2", 7241732096},
                                                {"mistral-7b-v0.3", 7248023552},
                                                {"mixtral-8x7b", 46702792704},
                                                {"qwen2-7b", 7615616512},
                                                {"qwen2.5-0.5b", 494032768},
                                                {"qwen2.5-1.5b", 1543714304},
                                                {"qwen2.5-3b", 3085938688},
                                                {"qwen2.5-7b", 7615616512},
                                                {"qwen3-0.6b", 596049920},
                                                {"qwen3-1.7b", 1720574976},
                                                {"qwen3-4b", 4022468096},
                                                {"qwen3-8b", 8190735360},
                                                {"qwen3-30b-a3b", 30532122624},
                                                {"qwen1.5-moe-a2.7b", 14315784192},
                                                {"qwen2-57b-a14b", 57408658944},
                                                {"olmoe-1b-7b", 6919161856},
                                                {"granite-3.1-1b-a400m", 1334628352},
                                                {"granite-3.1-3b-a800m", 3298793472},
                                                {"glm-4.5-air", 106852251264},
                                                {"qwen3-14b", 14768307200},
                                                {"qwen3-32b", 32762123264},
                                                {"phi-3-mini-4k", 3821079552},
                                                {"phi-3-mini-128k", 3821079552},
                                                {"phi-3-medium-4k", 13960238080},
                                                {"qwen2.5-14b", 14770033664},
                                                {"qwen2.5-32b", 32763876352},
                                                {"qwen2.5-72b", 72706203648},
                                                {"olmo-2-1b", 1484916736},
                                                {"olmo-2-7b", 7298617344},
                                                {"gemma-2b", 2506172416},
                                                {"gemma-7b", 8537680896},
                                                {"stablelm-2-1.6b", 1644515328},
                                                // Of transformers' StableLmForCausalLM.
                                                {"stablelm-2-12b", 12143185920},
                                                {"stablelm-3b-4e1t", 2795443200},
                                                {"gemma-2-2b", 2614341888},
                                                {"gemma-2-9b", 9241705984},
                                                {"gemma-2-27b", 27227128320},
                                                {"olmo-2-13b", 13716198400},
                                                {"olmo-2-32b", 32234279936},
                                                {"phi-1", 1418270720},
                                                {"phi-1_5", 1418270720},
                                                {"phi-2", 2779683840},
                                                {"gpt-neox-20b", 20554567680},
                                                {"gpt-oss-20b", 20914757184},
                                                {"gpt-oss-120b", 116829156672},
                                                {"pythia-70m", 70426624},
                                                {"pythia-160m", 162322944},
                                                {"pythia-410m", 405334016},
                                                {"pythia-1b", 1011781632},
                                                {"pythia-1.4b", 1414647808},
                                                {"pythia-2.8b", 2775208960},
                                                {"pythia-6.9b", 6857302016},
                                                {"pythia-12b", 11846072320},
                                                {"gemma-3-270m", 268098176},
                                                {"gemma-3-1b-pt", 999885952},
                                                {"granite-3.3-2b", 2533539840},
                                                {"granite-3.3-8b", 8170864640},
                                                {"smollm3-3b", 3075098624},
                                                {"olmo-3-7b", 7298011136},
                                                {"olmo-3-32b", 32233522176},
                                                {"seed-oss-36b", 36151104512},
                                                {"exaone-4.0-1.2b", 1279391488},
                                                {"exaone-4.0-32b", 32003216384},
                                                {"glm-4-9b-0414", 9400279040},
                                                {"glm-4-32b-0414", 32566081536},
                                                {"ernie-4.5-0.3b", 360748032},
                                                {"command-r7b-12-2024", 8028033024},
                                                {"hunyuan-7b", 7504568320},
                                                {"ministral-3-3b", 3429006336},
                                                {"ministral-3-8b", 8489553920},
                                                {"ministral-3-14b", 13506073600},
                                                {"phi-4", 14659507200},
                                                {"phi-4-mini", 3836021760},
                                                {"gemma-3-4b-pt", 3880263168},
                                                {"gemma-3-12b-pt", 11766034176},
                                                {"gemma-3-27b-pt", 27009346304},
                                                {"mistral-small-24b-2501", 23572403200},
                                                {"stablelm-base-alpha-3b", 3637321728},
                                                {"stablelm-base-alpha-7b", 7868755968},
                                                {"gpt2", 124439808},
                                                {"gpt2-medium", 354823168},
                                                {"gpt2-large", 774030080},
                                                {"gpt2-xl", 1557611200},
                                                {"bloom", 176247271424},
                                                {"bloom-560m", 559214592},
                                                {"bloom-1b1", 1065314304},
                                                {"bloom-1b7", 1722408960},
                                                {"bloom-3b", 3002557440},
                                                {"bloom-7b1", 7069016064},
                                                {"bloomz", 176247271424},
                                                {"bloomz-560m", 559214592},
                                                {"bloomz-1b1", 1065314304},
                                                {"bloomz-1b7", 1722408960},
                                                {"bloomz-3b", 3002557440},
                                                {"bloomz-7b1", 7069016064},
                                                {"falcon-7b", 6921720704},
                                                {"falcon-40b", 41303293952},
                                                {"falcon-180b", 178557088768},
                                                {"falcon-rw-1b", 1311625216},
                                                {"codet5p-2b", 3112427008},
                                                {"flan-t5-small", 76961152},
                                                {"flan-t5-base", 247577856},
                                                {"flan-t5-large", 783150080},
                                                {"flan-t5-xl", 2849757184},
                                                {"flan-t5-xxl", 11135332352},
                                                {"t0-3b", 2849757184},
                                                {"t5-small", 60506624},
                                                {"t5-base", 222903552},
                                                {"t5-large", 737668096},
                                                {"t5-3b", 2851598336},
                                                {"t5-11b", 11307321344},
                                                {"t5-v1_1-xxl", 11135332352},
                                                {"mt5-small", 300176768},
                                                {"mt5-base", 582401280},
                                                {"mt5-large", 1229581312},
                                                {"mt5-xl", 3742619648},
                                                {"mt5-xxl", 12921057280},
                                                {"mt0-xxl", 12921057280},
                                                {"lfm2-350m", 354483968},
                                                {"lfm2-700m", 742489344},
                                                {"lfm2-1.2b", 1170340608},
                                                {"lfm2-2.6b", 2569272320},
                                                {"lfm2.5-350m", 354483968},
                                                {"lfm2.5-1.2b", 1170340608},
                                                // With the two constants of each layer.
                                                {"apertus-8b", 8053338240},
                                                {"apertus-70b", 70599864640},
                                                // Of transformers' Qwen3_5ForCausalLM: what is
                                                // published counts images and further tokens too.
                                                {"qwen3.5-0.8b", 752393024},
                                                {"qwen3.5-2b", 1881825088},
                                                {"qwen3.5-4b", 4205751296},
                                                {"qwen3.5-9b", 8953803264},
                                                {"qwen3.5-27b", 26895998464},
                                                {"qwen3.6-27b", 26895998464},
                                                {"qwen3.8-27b", 26895998464},
                                                {"qwen3.5-35b-a3b", 34660610688},
                                                {"qwen3.6-35b-a3b", 34660610688},
                                                {"qwen3-next-80b-a3b", 79674391296},
                                                // Of Gemma4ForCausalLM and its unified form, with
                                                // the factors of layers, which are buffers there.
                                                {"gemma-4-12b", 11907350320},
                                                {"gemma-4-26b-a4b", 25233141790},
                                                {"gemma-4-31b", 30697345340},
                                                {"gemma-4-e2b", 4628569379},
                                                {"gemma-4-e4b", 7463013418}};

TEST(Presets, HaveThePublishedNumberOfParameters) {
  for (const std::string& name : models::preset_names()) {
    ASSERT_TRUE(kPublished.contains(name)) << name << ": add its published count";
    EXPECT_EQ(models::parameter_count(*models::preset(name)), kPublished.at(name)) << name;
  }
  EXPECT_EQ(models::preset_names().size(), kPublished.size());
}

// Fields of a line of CSV; quotes may hold commas.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

// "meta-llama/Meta-Llama-3-8B" -> "llama-3-8b": how presets are named.
std::string preset_name(const std::string& repository) {
  std::string name = repository.substr(repository.find('/') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const char* suffix : {"-hf", "-intermediate", " (base)", "-instruct"})
    if (const size_t at = name.find(suffix); at != std::string::npos) name.erase(at);
  if (name.starts_with("meta-")) name.erase(0, 5);
  if (name == "t0_3b") name = "t0-3b";
  if (name == "mixtral-8x7b-v0.1") name.erase(name.find("-v0.1"));  // there is one version
  return name;
}

TEST(Presets, AgreeWithTheTableOfPublishedModels) {
  const std::filesystem::path table = "../shared/published/models.csv";
  if (!std::filesystem::exists(table)) GTEST_SKIP() << table << " is not there";
  std::ifstream stream(table);
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> header = fields_of(line);
  const auto column = [&](const char* name) {
    return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  size_t checked = 0;
  while (std::getline(stream, line)) {
    const std::vector<std::string> fields = fields_of(line);
    const auto config = models::preset(preset_name(fields.at(column("hf_repo"))));
    // Of an encoder-decoder "20/32", the encoder's first.
    const auto decoders = [&](const char* name) {
      const std::string& field = fields.at(column(name));
      const size_t slash = field.find('/');
      return std::stoll(slash == std::string::npos ? field : field.substr(slash + 1));
    };
    if (models::find_family(fields.at(column("model_type"))) != nullptr) {
      ASSERT_TRUE(config) << line;
      EXPECT_EQ(config->model_type, fields.at(column("model_type"))) << line;
      EXPECT_EQ(models::parameter_count(*config), std::stoll(fields.at(column("params_computed"))));
      EXPECT_EQ(config->hidden_size, decoders("hidden_size")) << line;
      EXPECT_EQ(config->num_heads, decoders("num_heads")) << line;
      EXPECT_EQ(config->num_kv_heads, decoders("num_kv_heads")) << line;
      EXPECT_EQ(config->head_dim, decoders("head_dim")) << line;
      EXPECT_EQ(config->intermediate_size, decoders("intermediate_size")) << line;
      EXPECT_EQ(config->vocab_size, decoders("vocab_size")) << line;
      EXPECT_EQ(config->tied_embeddings, fields.at(column("tied_embeddings")).starts_with("y"))
          << line;
      EXPECT_EQ(config->num_layers - config->encoder_layers, decoders("num_layers"));
      if (const std::string& layers = fields.at(column("num_layers"));
          layers.find('/') != std::string::npos) {
        EXPECT_EQ(config->encoder_layers, std::stoll(layers)) << line;
      }
      // The table has the length that such a model was trained with, which is no limit.
      if (config->max_position < models::kMaxPositions) {
        EXPECT_EQ(config->max_position, std::stoll(fields.at(column("max_position")))) << line;
      }
      EXPECT_EQ(config->norm_epsilon, std::stof(fields.at(column("norm_eps")))) << line;
      if (config->positions == models::Positions::rotary) {
        EXPECT_EQ(config->rope.theta, std::stod(fields.at(column("rope_theta")))) << line;
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 25);
}

}  // namespace
}  // namespace snug::plan
