// What a user gets for every class of mistake: an exit code, one paragraph that names the file, the
// line or the key, and nothing half-written.
#include <gtest/gtest.h>

#include <signal.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>

#include "binary_run.h"
#include "tiny_model.h"

namespace snug::cli {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::TemporaryFolder;

// What a case may use: a whole model folder and data, to be broken, and the words of a sound run.
struct Scene {
  TemporaryFolder folder;
  std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    return folder.write(name, text).string();
  }
};

struct WrongInput {
  const char* name;
  // Breaks something; returns words that are put after those of a sound training run.
  std::function<std::vector<std::string>(const Scene&)> words;
  std::vector<std::string> parts;  // of the message
  int exit_code = 2;
};

std::function<std::vector<std::string>(const Scene&)> only(const std::string& words) {
  return [words](const Scene&) { return words_of(words); };
}

std::function<std::vector<std::string>(const Scene&)> with_data(const std::string& data) {
  return [data](const Scene& scene) {
    return std::vector<std::string>{"data=" + scene.file("wrong.jsonl", data),
                                    "on_bad_record=error"};
  };
}

std::function<std::vector<std::string>(const Scene&)> with_recipe(const std::string& yaml) {
  return [yaml](const Scene& scene) {
    return std::vector<std::string>{scene.file("wrong.yaml", yaml)};
  };
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// Replaces a text in a file of the model.
std::function<std::vector<std::string>(const Scene&)> with_model_file(const std::string& file,
                                                                      const std::string& from,
                                                                      const std::string& to) {
  return [=](const Scene& scene) {
    const std::string name = "model/" + file;
    scene.file(name, replaced(contents_of(scene.folder / name), from, to));
    return std::vector<std::string>{};
  };
}

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

// A folder of weights in 4 bits in place of the model, a text in one of its files replaced.
std::vector<std::string> with_nf4(const Scene& scene, const std::string& golden,
                                  const std::string& file, const std::string& from,
                                  const std::string& to) {
  fs::copy("tests/goldens/nf4/" + golden, scene.folder / "nf4");
  const std::string name = "nf4/" + file;
  scene.file(name, replaced(contents_of(scene.folder / name), from, to));
  return {"model=" + scene.path("nf4"),
          "data=" + scene.file("ids.jsonl", "{\"input_ids\": [1, 2, 3, 4, 5]}\n"), "max_length=16"};
}

// What its config.json says of double quantisation, turned around.
std::function<std::vector<std::string>(const Scene&)> with_nf4_said(const std::string& golden,
                                                                    const std::string& words) {
  const bool is_double = golden == "double";
  const auto said = [](bool value) {
    return std::string("\"bnb_4bit_use_double_quant\": ") + (value ? "true" : "false");
  };
  return [=](const Scene& scene) {
    return joined(with_nf4(scene, golden, "config.json", said(is_double), said(!is_double)),
                  words_of(words));
  };
}

std::function<std::vector<std::string>(const Scene&)> with_nf4_unsaid(const std::string& words) {
  return [=](const Scene& scene) {
    return joined(with_nf4(scene, "double", "config.json", "\"quantization_config\"", "\"other\""),
                  words_of(words));
  };
}

std::vector<std::string> with_nf4_of_garbage(const Scene& scene) {
  return with_nf4(scene, "double", "model.safetensors", "{\"quant_type\"", "\xff\xfe{\"quant_typ");
}

std::vector<std::string> without_weights(const Scene& scene) {
  fs::remove(scene.folder / "model/model.safetensors");
  return {};
}

std::vector<std::string> with_pickle(const Scene& scene) {
  fs::remove(scene.folder / "model/model.safetensors");
  scene.file("model/pytorch_model.bin", "not to be read");
  return {};
}

std::vector<std::string> with_truncated_weights(const Scene& scene) {
  const fs::path path = scene.folder / "model/model.safetensors";
  fs::resize_file(path, fs::file_size(path) - 100);
  return {};
}

std::vector<std::string> with_lying_header(const Scene& scene) {
  std::string bytes = contents_of(scene.folder / "model/model.safetensors");
  bytes[5] = '\x7f';  // the header's length, little-endian
  scene.file("model/model.safetensors", bytes);
  return {};
}

std::vector<std::string> with_filled_output(const Scene& scene) {
  scene.file("filled/mine.txt", "precious");
  return {"output_dir=" + scene.path("filled")};
}

// Whatever resuming finds, a folder that no run of snug made is left alone.
std::vector<std::string> with_foreign_output(const Scene& scene, const std::string& checkpoint) {
  return joined(with_filled_output(scene), {"resume_from_checkpoint=" + checkpoint});
}

std::vector<std::string> with_data_in_output(const Scene& scene) {
  return joined(with_filled_output(scene), {"data=" + scene.file("filled/data.jsonl", kTinyData),
                                            "overwrite_output_dir=true"});
}

std::vector<std::string> with_model_in_output(const Scene& scene) {
  return {"output_dir=" + scene.path("model/../model"), "overwrite_output_dir=true"};
}

const std::vector<WrongInput> kCases{
    {"in_backward_accumulated",
     only("optim_in_backward=true gradient_accumulation_steps=2"),
     {"optim_in_backward", "gradient_accumulation_steps is 2; set it to 1"}},
    {"offloading_without_recomputation",
     only("activation_offloading=true recompute=none"),
     {"activation_offloading", "set recompute=layer", "leave recompute out"}},
    {"window_for_copies_of_nothing",
     only("offload_window=1GiB"),
     {"offload_window", "set offload_params=true or offload_optimizer=auto too"}},
    {"weights_on_a_drive",
     only("offload_param_device=nvme"),
     {"offload_param_device", "not built", "offload_params: true"}},
    {"in_backward_clipped",
     only("optim_in_backward=true"),
     {"optim_in_backward", "max_grad_norm=1", "set max_grad_norm=0"}},
    {"unknown_key", only("lerning_rate=1"), {"lerning_rate", "learning_rate"}},
    {"unknown_key_in_a_file",
     with_recipe("seed: 1\nlerning_rate: 1\n"),
     {"wrong.yaml:2:1", "learning_rate"}},
    {"broken_yaml", with_recipe("seed: [1\n"), {"wrong.yaml:", "YAML"}},
    {"nested_yaml", with_recipe("seed:\n  a: 1\n"), {"wrong.yaml:2:3", "seed"}},
    {"adapter_next_to_full",
     only("method=full adapter=nowhere"),
     {"adapter", "nowhere", "method=full trains every weight", "with snug merge"}},
    {"key_of_lora_next_to_full",
     only("method=full lora_r=4"),
     {"command line: 'lora_r'", "method=full does not use"}},
    {"unknown_module_to_freeze",
     only("method=full freeze_modules=layers.[01],q_prj"),
     {"command line: 'freeze_modules'", "\"q_prj\"", "\"q_proj\"", "lm_head"}},
    {"frozen_next_to_lora", only("freeze_modules=lm_head"), {"freeze_modules", "method=full"}},
    {"documents_in_rows_of_one",
     only("packing=false max_segments=4"),
     {"max_segments", "packing=false"}},
    {"missing_adapter", only("adapter=nowhere"), {"nowhere", "adapter_config.json"}},
    {"deep_config",
     with_model_file("config.json", "{", "{\"x\": " + nested(100'000) + ", "),
     {"config.json:1:", "nest deeper than 64"}},
    {"deep_tokenizer",
     with_model_file("tokenizer.json", "{", "{\"x\": " + nested(100'000) + ", "),
     {"tokenizer.json:1:", "nest deeper than 64"}},
    {"deep_data",
     with_data("{\"input_ids\": " + nested(100'000) + "}\n"),
     {"wrong.jsonl:1", "record 1", "nest deeper than 64"}},
    {"table_as_data",
     [](const Scene& scene) { return std::vector{"data=" + scene.file("wrong.xlsx", "PK")}; },
     {"wrong.xlsx", ".jsonl", "pandas.read_excel"}},
    {"model_of_the_hub",
     only("model=meta-llama/Llama-3.1-8B"),
     {"'hf download meta-llama/Llama-3.1-8B'", "\"llama-3.1-8b\""}},
    {"rank_of_zero", only("lora_r=0"), {"lora_r", "1 or more"}},
    {"negative_size", only("device_memory=-1"), {"device_memory", "size"}},
    {"negative_count", with_recipe("seed: 1\nsave_steps: -5\n"), {"wrong.yaml:2:1", "save_steps"}},
    {"longer_than_the_model", only("max_length=4096"), {"max_length", "256 positions"}},
    {"too_many_rows",
     only("max_length=256 per_device_train_batch_size=8388608"),
     {"per_device_train_batch_size", "at most 8388607 rows", "gradient_accumulation_steps"}},
    {"unknown_chat_template", only("chat_template=nope"), {"chat_template", "nope", "chatml"}},
    {"unknown_target_module", only("target_modules=q_prj"), {"q_prj", "q_proj"}},
    {"key_of_another_verb", only("presence_penalty=1"), {"presence_penalty", "generate"}},
    {"not_a_word", only("learning_rate"), {"learning_rate", "key=value"}},
    {"unknown_model", only("model=llama-3.1-9b"), {"llama-3.1-9b", "llama-3.1-8b"}},
    {"model_without_weights", only("model=llama-3.1-8b"), {"model", "shape without weights"}},
    {"model_without_tokenizer",
     only("model=smollm2-135m init=random"),
     {"model", "shape without a tokenizer"}},
    {"evaluations_of_nothing", only("eval_steps=1"), {"eval_steps", "no eval_data"}},
    {"bytes_that_are_no_text", only("chat_template=\xff\xfe"), {"chat_template", "UTF-8"}},
    {"too_many_threads", only("threads=99999"), {"threads", "1024"}},
    {"too_large_a_rank", only("lora_r=1000000000000"), {"lora_r", "65536"}},
    {"too_many_micro_batches",
     only("gradient_accumulation_steps=9223372036854775807"),
     {"gradient_accumulation_steps", "1000000"}},
    {"data_in_what_is_emptied", with_data_in_output, {"data", "lies in output_dir"}},
    {"model_in_what_is_emptied", with_model_in_output, {"model", "lies in output_dir"}},
    {"unknown_model_type",
     with_model_file("config.json", "\"llama\"", "\"lama\""),
     {"config.json", "model_type", "lama"}},
    {"broken_config", with_model_file("config.json", "{", ""), {"config.json"}},
    {"tokenizer_of_another_model",
     with_model_file("config.json", "\"vocab_size\": 258", "\"vocab_size\": 200"),
     {"258", "200"}},
    {"wrong_shape",
     with_model_file("config.json", "\"intermediate_size\": 48", "\"intermediate_size\": 40"),
     {"model.safetensors", "mlp.", "48", "40"}},
    {"missing_tensor",
     with_model_file("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
     {"model.layers.2."}},
    {"surplus_tensor",
     with_model_file("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1"),
     {"model.layers.1."}},
    {"missing_weights", without_weights, {"model", "safetensors"}},
    {"pickle", with_pickle, {"pytorch_model.bin", "safetensors"}},
    {"truncated_weights", with_truncated_weights, {"model.safetensors"}},
    {"lying_header", with_lying_header, {"model.safetensors"}},
    {"endless_layers",
     with_model_file("config.json", "\"num_hidden_layers\": 2",
                     "\"num_hidden_layers\": 1000000000000"),
     {"config.json", "'num_hidden_layers' is 1000000000000", "at most 1024"}},
    {"double_quant_of_16_bits",
     only("double_quant=true"),
     {"double_quant", "load_in_4bit=true", "method=qlora"}},
    {"head_of_16_bits",
     only("load_head_in_4bit=true"),
     {"load_head_in_4bit", "load_in_4bit=true", "method=qlora"}},
    {"double_quantised_said_not",
     with_nf4_said("double", "method=qlora"),
     {"nf4/model.safetensors", "_proj.weight.quant_state.bitsandbytes__nf4' is double quantised",
      "config.json says bnb_4bit_use_double_quant = false", "set it to true"}},
    {"not_double_quantised_said_so",
     with_nf4_said("plain", "method=qlora"),
     {"nf4/model.safetensors", "is quantised once", "bnb_4bit_use_double_quant = true",
      "set it to false"}},
    {"quantised_unsaid_lora",
     with_nf4_unsaid("method=lora"),
     {"nf4/model.safetensors", "_proj.weight", "config.json has no quantization_config",
      "\"bnb_4bit_use_double_quant\": true"}},
    {"quantised_unsaid_qlora", with_nf4_unsaid("method=qlora"), {"no quantization_config"}},
    {"quantised_unsaid_full", with_nf4_unsaid("method=full"), {"no quantization_config"}},
    {"quant_state_of_garbage",
     with_nf4_of_garbage,
     {"nf4/model.safetensors", ".quant_state.bitsandbytes__nf4'", "not valid JSON", "\\xff"}},
    {"missing_data", only("data=nowhere.jsonl"), {"nowhere.jsonl"}},
    {"missing_eval_data", only("eval_data=gone.jsonl"), {"eval_data", "gone.jsonl"}},
    {"empty_data", with_data(""), {"wrong.jsonl"}},
    {"broken_data", with_data("{\"text\": \"a\"}\n{\"text\"\n"), {"wrong.jsonl:2"}},
    {"record_without_fields",
     with_data("{\"instruction\": \"a\", \"output\": \"b\"}\n{\"x\": 1}\n"),
     {"wrong.jsonl:2"}},
    {"answer_cut_away", only("max_length=16"), {"data.jsonl:1", "max_length"}},
    {"output_folder_exists", with_filled_output, {"filled", "overwrite_output_dir"}},
    {"foreign_output_and_nothing_to_resume",
     [](const Scene& scene) { return with_foreign_output(scene, "auto"); },
     {"filled", "not empty", "mine.txt"}},
    {"foreign_output_and_a_checkpoint_elsewhere",
     [](const Scene& scene) { return with_foreign_output(scene, scene.path("model")); },
     {"filled", "not empty", "overwrite_output_dir"}},
    {"budget_too_small", only("device_memory=100000"), {"100000", "does not fit"}, 3},
    {"host_budget_too_small", only("host_memory=1MiB"), {"host_memory", "does not fit"}, 3},
};

class WrongInputs : public ::testing::TestWithParam<WrongInput> {
 protected:
  static void SetUpTestSuite() {
    scene_ = std::make_unique<Scene>();
    write_tiny_shape(scene_->folder, "shape");
    scene_->file("data.jsonl", kTinyData);
    const BinaryRun run =
        run_snug({"train", "model=" + scene_->path("shape"), "init=random", "method=full",
                  "max_length=256", "max_steps=1", "data=" + scene_->path("data.jsonl"),
                  "output_dir=" + scene_->path("base"), "threads=1"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  static void TearDownTestSuite() { scene_.reset(); }

  static std::unique_ptr<Scene> scene_;
};

std::unique_ptr<Scene> WrongInputs::scene_;

TEST_P(WrongInputs, AreToldInOneParagraph) {
  const WrongInput& wrong = GetParam();
  Scene scene;
  fs::copy(scene_->path("base/model"), scene.path("model"), fs::copy_options::recursive);
  scene.file("data.jsonl", kTinyData);
  const std::vector<std::string> sound{"train",          "model=" + scene.path("model"),
                                       "method=lora",    "data=" + scene.path("data.jsonl"),
                                       "max_length=256", "output_dir=" + scene.path("run"),
                                       "max_steps=1",    "threads=1"};
  const BinaryRun run = run_snug(joined(sound, wrong.words(scene)));
  EXPECT_EQ(run.exit_code, wrong.exit_code) << run.err;
  const std::string message = run.last_line();
  EXPECT_TRUE(message.starts_with("snug: error: ")) << run.err;
  for (const std::string& part : wrong.parts) EXPECT_TRUE(contains(message, part));
  EXPECT_TRUE(run.out.empty()) << run.out;
  // Nothing half-written, and the name of the folder still free for the next try.
  for (const char* name : {"run", "filled/recipe.yaml"})
    EXPECT_FALSE(fs::exists(scene.folder / name)) << name;
  if (fs::exists(scene.folder / "filled")) {
    EXPECT_EQ(contents_of(scene.folder / "filled/mine.txt"), "precious");
  }
}

std::string case_name(const ::testing::TestParamInfo<WrongInput>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(All, WrongInputs, ::testing::ValuesIn(kCases), case_name);

TEST(StandardOutput, ThatIsFullIsAnError) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/full", folder / "out");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"models"}, {"plan", "model=smollm2-135m", "--json"}}) {
    EXPECT_EQ(wait_for(start_snug(words, folder.path())), 1) << words[0];
    EXPECT_TRUE(contains(contents_of(folder / "err"), "standard output")) << words[0];
  }
}

// A reader that goes away (| head -1) ends the process as it ends others, and before it is done.
TEST(StandardOutput, WithoutAReaderEndsQuietly) {
  const TemporaryFolder folder;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"models"},
                                                {"plan", "model=smollm2-135m", "--json"},
                                                {"--help"},
                                                {"generate", "model=examples/wordnet", "prompt=The",
                                                 "max_new_tokens=100", "temperature=0"}}) {
    const auto start = std::chrono::steady_clock::now();
    const pid_t process = start_snug(words, folder.path(), [&] { ::dup2(ends[1], STDOUT_FILENO); });
    EXPECT_EQ(wait_for(process), 128 + SIGPIPE) << words[0];
    EXPECT_EQ(contents_of(folder / "err"), "") << words[0];
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60)) << words[0];
  }
  ::close(ends[1]);
}

// A file that is opened later must not become standard output.
TEST(StandardOutput, ThatIsClosedIsAnError) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"models"}, {"plan", "model=smollm2-135m", "--json"}}) {
    const pid_t process = start_snug(words, folder.path(), [] { ::close(STDOUT_FILENO); });
    EXPECT_EQ(wait_for(process), 1) << words[0];
    EXPECT_TRUE(contains(contents_of(folder / "err"), "snug: error: ")) << words[0];
  }
}

TEST(WrongWords, NameWhatWasMeant) {
  const BinaryRun verb = run_snug({"plna"});
  EXPECT_EQ(verb.exit_code, 2);
  EXPECT_TRUE(contains(verb.err, "'plan'"));
  const BinaryRun none = run_snug({});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "snug: error: "));
  const BinaryRun dashes = run_snug({"train", "--max_steps=3"});
  EXPECT_EQ(dashes.exit_code, 2);
  EXPECT_TRUE(contains(dashes.err, "without dashes"));
  const BinaryRun model = run_snug({"plan"});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_TRUE(contains(model.err, "'model' is missing"));
}

}  // namespace
}  // namespace snug::cli
