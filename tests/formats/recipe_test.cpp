#include "formats/recipe/recipe.h"

#include "../base/temporary_folder.h"
#include "formats/recipe/recipe_keys.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace snug::formats {
namespace {

using testing::contains;
using testing::TemporaryFolder;
using testing::user_error_of;

Recipe parse(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(yaml, "r.yaml", overrides);
}

TEST(Recipe, DefaultsAreThoseUsersKnow) {
  const Recipe recipe = parse("");
  EXPECT_EQ(recipe.method, Method::lora);
  EXPECT_EQ(recipe.lora_r, 16);
  EXPECT_EQ(recipe.lora_alpha, 32);
  EXPECT_EQ(recipe.target_modules, std::vector<std::string>{"all-linear"});
  EXPECT_EQ(recipe.learning_rate, 2e-4);
  EXPECT_EQ(recipe.lr_scheduler_type, Schedule::cosine);
  EXPECT_EQ(recipe.warmup_ratio, 0.03);
  EXPECT_EQ(recipe.max_length, 1024);
  EXPECT_EQ(recipe.per_device_train_batch_size, 1);
  EXPECT_EQ(recipe.adam_beta2, 0.999);
  EXPECT_EQ(recipe.adam_epsilon, 1e-8);
  EXPECT_EQ(recipe.max_grad_norm, 1);
  EXPECT_EQ(recipe.seed, 42);
  EXPECT_EQ(recipe.resume_from_checkpoint, "none");
  EXPECT_TRUE(recipe.packing);
  EXPECT_TRUE(recipe.shuffle);
  EXPECT_FALSE(recipe.train_on_prompt);
  EXPECT_EQ(recipe.top_p, 1);
  EXPECT_TRUE(recipe.given.empty());
}

// As TRL, axolotl and ms-swift call it.
TEST(Recipe, TruncationHasTheWordsOfOthers) {
  using base::Truncation;
  EXPECT_EQ(parse("").truncation, Truncation::end);
  EXPECT_EQ(parse("truncation: keep_end").truncation, Truncation::keep_end);
  EXPECT_EQ(parse("truncation_mode: keep_start").truncation, Truncation::end);
  EXPECT_EQ(parse("truncation_mode: keep_end").truncation, Truncation::keep_end);
  EXPECT_EQ(parse("excess_length_strategy: truncate").truncation, Truncation::end);
  EXPECT_EQ(parse("excess_length_strategy: drop").truncation, Truncation::drop);
  EXPECT_EQ(parse("truncation_strategy: right").truncation, Truncation::end);
  EXPECT_EQ(parse("truncation_strategy: left").truncation, Truncation::keep_end);
  EXPECT_EQ(parse("truncation_strategy: delete").truncation, Truncation::drop);
}

// However they are written, they are the list that the records are read by.
TEST(Recipe, PairsAreAMapOrAList) {
  using Texts = std::vector<std::string>;
  const Texts both{"prompt=q", "completion=a.0.text"};
  EXPECT_EQ(parse("fields:\n  prompt: q\n  completion: a.0.text\n").fields, both);
  EXPECT_EQ(parse("fields: {prompt: q, completion: a.0.text}").fields, both);
  EXPECT_EQ(parse("column_map: {prompt: q, completion: a.0.text}").fields, both);
  EXPECT_EQ(parse("fields: [prompt=q, completion=a.0.text]").fields, both);
  EXPECT_EQ(parse("", {"fields=[prompt=q,completion=a.0.text]"}).fields, both);
  EXPECT_EQ(parse("", {"fields={prompt: q, completion: a.0.text}"}).fields, both);
  EXPECT_EQ(parse("", {"fields.prompt=q", "fields.completion=a.0.text"}).fields, both);
  EXPECT_EQ(parse("fields: {messages.role: speaker}").fields, Texts{"messages.role=speaker"});
  EXPECT_EQ(parse("fields: {prompt: 'Q, or {q}: '}").fields, Texts{"prompt=Q, or {q}: "});
  const Texts lists{R"(prompt=["Q: {q}, {c}","q"])", R"(system=["s",""])"};
  EXPECT_EQ(parse("fields: {prompt: ['Q: {q}, {c}', q], system: [s, '']}").fields, lists);
  EXPECT_EQ(parse("", {"fields={prompt: ['Q: {q}, {c}', q], system: [s, '']}"}).fields, lists);
  EXPECT_EQ(parse("", {R"(fields.prompt=["Q: {q}, {c}","q"])", R"(fields.system=["s",""])"}).fields,
            lists);
  EXPECT_EQ(parse(to_yaml(parse("fields: {prompt: ['Q: {q}, {c}', q], system: [s, '']}"))).fields,
            lists);
  // A pair on the command line takes the place of the recipe's pair alone, a list that of all.
  const char* const in_file = "fields: {prompt: q, completion: a}";
  EXPECT_EQ(parse(in_file, {"fields.completion=b"}).fields, (Texts{"completion=b", "prompt=q"}));
  EXPECT_EQ(parse(in_file, {"fields=[completion=b]"}).fields, Texts{"completion=b"});
  EXPECT_FALSE(user_error_of([] {
                 parse("", {"column_map=[prompt=q]", "fields=[completion=b]"});
               }).empty());
  EXPECT_EQ(parse("roles: {bot: assistant}").roles, Texts{"bot=assistant"});
  EXPECT_EQ(to_yaml(parse(to_yaml(parse("fields: {prompt: 'a, {q}'}")))),
            to_yaml(parse("fields: {prompt: 'a, {q}'}")));
  EXPECT_TRUE(contains(user_error_of([] { parse("fields:\n  prompt:\n"); }), "'fields"));
}

// Commas and spaces are part of them.
TEST(Recipe, StopTextsAreWhole) {
  const auto stop = [](const std::string& yaml, const std::vector<std::string>& words) {
    return parse_recipe(yaml, "r.yaml", words).stop;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(stop("", {"stop=a, b"}), Texts{"a, b"});
  EXPECT_EQ(stop("", {"stop=[INST]"}), Texts{"[INST]"});
  EXPECT_EQ(stop("", {R"(stop=["a, b", "\n\n"])"}), (Texts{"a, b", "\n\n"}));
  EXPECT_EQ(stop("stop: 'User: '", {}), Texts{"User: "});
  EXPECT_EQ(stop("stop_strings: [\"a b\", c]", {}), (Texts{"a b", "c"}));
  for (const char* wrong : {"stop=", "stop=[\"a\", 5]", "stop=[\"a\"", "stop=[\"a\", \"a\"]"})
    EXPECT_TRUE(contains(user_error_of([&] { stop("", {wrong}); }), "'stop' is")) << wrong;
}

TEST(Recipe, DefaultsFollowOtherKeys) {
  EXPECT_EQ(parse("method: full").learning_rate, 1e-5);
  EXPECT_EQ(parse("objective: dpo").learning_rate, 5e-6);
  // Its word stands behind a value that has none.
  EXPECT_EQ(parse("objective: simpo").objective, Objective::simpo);
  EXPECT_TRUE(contains(to_yaml(parse("objective: simpo")), "objective: simpo\n"));
  EXPECT_EQ(parse("{rl: dpo, method: full}").learning_rate, 1e-6);
  EXPECT_EQ(parse("objective: orpo").learning_rate, 5e-6);
  EXPECT_EQ(parse("{objective: kto, method: full}").learning_rate, 1e-6);
  EXPECT_EQ(parse("{stage: sft, method: full}").learning_rate, 1e-5);
  EXPECT_EQ(parse("lora_r: 4").lora_alpha, 8);
  EXPECT_EQ(parse("{lora_r: 4, lora_alpha: 3}").lora_alpha, 3);
  EXPECT_EQ(parse("optim: adamw").adam_beta2, 0.999);
  EXPECT_EQ(parse("optim: lion").adam_beta2, 0.99);
  EXPECT_EQ(parse("{optim: lion, adam_beta2: 0.9}").adam_beta2, 0.9);
  EXPECT_EQ(parse("model: models/tiny/").output_dir, "runs/tiny-lora");
  EXPECT_EQ(parse("{model: llama-3.1-8b, method: full}").output_dir, "runs/llama-3.1-8b-full");
  EXPECT_EQ(parse("{model: x, output_dir: out}").output_dir, "out");
}

TEST(Recipe, ReadsEveryType) {
  const Recipe recipe = parse(
      "model: a b # a comment\n"
      "target_modules:\n  - q_proj\n  - v_proj\n"
      "learning_rate: 3e-4\nmax_steps: 1e3\npacking: no\nuse_rslora: True\n"
      "device_memory: 80GiB\noptim: adamw_bf16\nids: [1, 5, 9]\nprompt: \"# not a comment\"\n");
  EXPECT_EQ(recipe.model, "a b");
  EXPECT_EQ(recipe.target_modules, (std::vector<std::string>{"q_proj", "v_proj"}));
  EXPECT_EQ(recipe.learning_rate, 3e-4);
  EXPECT_EQ(recipe.max_steps, 1000);
  EXPECT_FALSE(recipe.packing);
  EXPECT_TRUE(recipe.use_rslora);
  EXPECT_EQ(recipe.device_memory, int64_t{80} << 30);
  EXPECT_EQ(recipe.optim, Optimizer::adamw_bf16);
  EXPECT_EQ(recipe.ids, (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(recipe.prompt, "# not a comment");
}

// Printed as the number that stands for it.
TEST(Recipe, LengthAndRowsMayBeOpen) {
  const Recipe open = parse("max_seq_length: auto\nper_device_train_batch_size: auto");
  EXPECT_EQ(open.max_length, 0);
  EXPECT_EQ(open.per_device_train_batch_size, 0);
  EXPECT_EQ(to_yaml(parse(to_yaml(open))), to_yaml(open));
}

TEST(Recipe, AliasesAreOtherNames) {
  EXPECT_EQ(parse("micro_batch_size: 4").per_device_train_batch_size, 4);
  EXPECT_EQ(parse("batch_size: 4").per_device_train_batch_size, 4);
  for (const char* name :
       {"sequence_len", "cutoff_len", "max_seq_length", "context_length", "max_length"})
    EXPECT_EQ(parse(std::string(name) + ": 77").max_length, 77) << name;
  EXPECT_EQ(parse("lora_rank: 4").lora_r, 4);
  EXPECT_EQ(parse("lora_target_modules: [o_proj]").target_modules.front(), "o_proj");
  EXPECT_EQ(parse("num_epochs: 2").num_train_epochs, 2);
  EXPECT_EQ(parse("train_type: full").method, Method::full);
  EXPECT_EQ(parse("model_name_or_path: x").model, "x");
  EXPECT_TRUE(parse("lora_rank: 4").is_given("lora_r"));
}

TEST(Recipe, WordsOfOtherToolsAreTranslated) {
  EXPECT_EQ(parse("gradient_checkpointing: true").recompute, Recompute::layer);
  EXPECT_EQ(parse("gradient_checkpointing: false").recompute, Recompute::none);
  EXPECT_EQ(parse("bf16: true").compute_dtype, ComputeDtype::bf16);
  EXPECT_EQ(parse("bf16: false").compute_dtype, ComputeDtype::fp32);
  EXPECT_EQ(parse("torch_dtype: float16").compute_dtype, ComputeDtype::fp16);
  EXPECT_TRUE(parse("bf16: false\nfp16: true").fp16);
  for (const char* name :
       {"adamw_torch", "adamw_torch_fused", "adamw_torch_xla", "adamw_torch_npu_fused",
        "adamw_apex_fused", "adamw_hf", "paged_adamw", "paged_adamw_32bit"})
    EXPECT_EQ(parse(std::string("optim: ") + name).optim, Optimizer::adamw) << name;
  for (const char* name : {"adamw_8bit", "adamw_bnb_8bit", "adamw_torch_8bit", "paged_adamw_8bit"})
    EXPECT_EQ(parse(std::string("optim: ") + name).optim, Optimizer::adamw_8bit) << name;
  for (const char* name : {"lion", "lion_32bit", "paged_lion", "paged_lion_32bit"})
    EXPECT_EQ(parse(std::string("optim: ") + name).optim, Optimizer::lion) << name;
  EXPECT_EQ(parse("optim: adafactor\nscale_parameter: false").optim, Optimizer::adafactor);
  const std::vector<double> coefficients{3.4445, -4.775, 2.0315};
  EXPECT_EQ(parse("optim: muon").ns_coefficients, coefficients);
  const std::vector<double> given{2, -1.5, 0.5};
  EXPECT_EQ(parse("optim: muon\nns_coefficients: [2, -1.5, 0.5]").ns_coefficients, given);
  EXPECT_EQ(parse("max_steps: -1").max_steps, 0);
  EXPECT_EQ(parse("resume_from_checkpoint: true").resume_from_checkpoint, "auto");
  EXPECT_EQ(parse("load_in_4bit: false\nreport_to: none\nfp16: false").method, Method::lora);
  EXPECT_EQ(parse("load_in_4bit: true\nbnb_4bit_compute_dtype: bfloat16").method, Method::qlora);
  EXPECT_EQ(parse("method: lora\nload_in_4bit: true").method, Method::qlora);
  EXPECT_TRUE(parse("method: qlora").load_in_4bit);
  EXPECT_TRUE(parse("method: qlora\nbnb_4bit_quant_type: nf4").double_quant);
  EXPECT_FALSE(parse("method: qlora\nbnb_4bit_use_double_quant: false").double_quant);
}

TEST(Recipe, OverridesWin) {
  const Recipe recipe =
      parse("learning_rate: 1e-3\nlora_rank: 4\nmethod: qlora\n",
            {"lora_r=8", "method=lora", "target_modules=q_proj,k_proj", "prompt=a=b", "ids=1 5 9"});
  EXPECT_EQ(recipe.learning_rate, 1e-3);
  EXPECT_EQ(recipe.lora_r, 8);
  EXPECT_EQ(recipe.target_modules, (std::vector<std::string>{"q_proj", "k_proj"}));
  EXPECT_EQ(recipe.prompt, "a=b");
  EXPECT_EQ(recipe.ids, (std::vector<int64_t>{1, 5, 9}));
  EXPECT_EQ(recipe.given.at("lora_r").file, "command line");
  EXPECT_EQ(recipe.given.at("learning_rate").line, 1);
  EXPECT_EQ(parse("", {"target_modules=[q_proj, k_proj]"}).target_modules.size(), 2U);
}

TEST(Recipe, Fp16IsAnotherNameOfTheComputeType) {
  EXPECT_EQ(parse("fp16: true").compute_dtype, ComputeDtype::fp16);
  EXPECT_TRUE(parse("compute_dtype: fp16\nfp16: true").fp16);
  EXPECT_EQ(parse("fp16: false").compute_dtype, ComputeDtype::automatic);
  EXPECT_EQ(parse("fp16: true", {"compute_dtype=bf16"}).compute_dtype, ComputeDtype::bf16);
  EXPECT_FALSE(parse("fp16: true", {"compute_dtype=bf16"}).fp16);
  EXPECT_EQ(parse("compute_dtype: bf16", {"fp16=true"}).compute_dtype, ComputeDtype::fp16);
  EXPECT_EQ(parse("compute_dtype: fp16", {"fp16=false"}).compute_dtype, ComputeDtype::automatic);
  for (const char* both : {"fp16: true\ncompute_dtype: bf16", "fp16: false\ncompute_dtype: fp16"})
    EXPECT_TRUE(contains(user_error_of([&] { parse(both); }), "leave one of them out")) << both;
}

TEST(Recipe, NullMeansTheDefault) {
  EXPECT_EQ(parse("lora_r: null\nadapter: ~\nseed: 7").lora_r, 16);
  EXPECT_FALSE(parse("lora_r: null").is_given("lora_r"));
  EXPECT_EQ(parse("lora_r: 4", {"lora_r=null"}).lora_r, 16);
  EXPECT_EQ(parse("adapter: a", {"adapter="}).adapter, "");
  EXPECT_EQ(parse("prompt: \"null\"").prompt, "null") << "quoted text is text";
  EXPECT_EQ(parse("", {"prompt=null"}).prompt, "null");
}

TEST(Recipe, FailNamesTheKeyAndItsPlace) {
  const Recipe recipe = parse("seed: 1\nmax_length: 9\n", {"data=x.json"});
  EXPECT_TRUE(contains(user_error_of([&] { recipe.fail("max_length", "is too long"); }),
                       "r.yaml:2:1: 'max_length' is too long"));
  EXPECT_TRUE(contains(user_error_of([&] { recipe.fail("data", "is empty"); }),
                       "command line: 'data' is empty"));
  EXPECT_EQ(user_error_of([&] { recipe.fail("lora_r", "is odd"); }), "'lora_r' is odd");
}

TEST(Recipe, RequireSaysHowToSetAKey) {
  EXPECT_EQ(user_error_of([] { parse("data: x").require("data"); }), "(no error)");
  EXPECT_TRUE(contains(user_error_of([] { parse("").require("model"); }), "'model' is missing"));
  EXPECT_TRUE(contains(user_error_of([] { parse("").require("model"); }), "model=..."));
}

TEST(Recipe, PrintsWhatReadsBack) {
  const Recipe recipe = parse(
      "model: \"models/with: colon\"\nmethod: full\nlearning_rate: 1.2345678901234567e-05\n"
      "target_modules: [q_proj, v_proj]\ndevice_memory: 24GB\nchat_template: \"null\"\n"
      "recompute: gate_up\nadam_epsilon: 1e-7\n");
  const std::string text = to_yaml(recipe);
  const Recipe again = parse(text);
  for (const RecipeKey& key : recipe_keys()) {
    if (key.field.get == nullptr || !key.belongs_to(Verb::train)) continue;
    EXPECT_EQ(key.field.get(again), key.field.get(recipe)) << key.name;
    EXPECT_TRUE(contains(text, fmt::format("\n{}: ", key.name)));
  }
  EXPECT_EQ(to_yaml(again), text);
  EXPECT_EQ(text.find("prompt_format"), std::string::npos);
  EXPECT_TRUE(contains(to_yaml(recipe, Verb::generate), "prompt_format: raw"));
}

// A pattern has brackets of its own, and a list in YAML has them too.
// [] would be given.
TEST(Recipe, PrintsListsThatWereNotGivenAsNull) {
  const std::string text = to_yaml(parse("model: m\nmethod: full"));
  EXPECT_NE(text.find("layers_to_transform: null"), std::string::npos) << text;
  EXPECT_EQ(text.find("[]"), std::string::npos) << text;
}

TEST(Recipe, PrintsPatternsThatReadBack) {
  using Patterns = std::vector<std::string>;
  for (const Patterns& patterns :
       {Patterns{}, Patterns{"layers.[0-9]"}, Patterns{"[mx]odel.[0-9]"}, Patterns{"*.mlp"},
        Patterns{"layers.[01]", "lm_head", "[!l]*", "!x", "a b"}}) {
    Recipe recipe = parse("model: m\nmethod: full\n");
    recipe.freeze_modules = patterns;
    const std::string text = to_yaml(recipe);
    EXPECT_EQ(parse(text).freeze_modules, patterns) << text;
    EXPECT_EQ(parse(text).is_given("freeze_modules"), !patterns.empty());
    EXPECT_EQ(to_yaml(parse(text)), text);
  }
  EXPECT_EQ(parse("", {"freeze_modules=layers.[0-9],lm_head"}).freeze_modules,
            (Patterns{"layers.[0-9]", "lm_head"}));
  EXPECT_EQ(parse("", {"trainable_modules=[layers.[0-9], lm_head]"}).trainable_modules,
            (Patterns{"layers.[0-9]", "lm_head"}));
}

// A shell leaves the quotes of a list in place where the whole is quoted: 'key=["a", "b"]'.
TEST(Recipe, ListsOnTheCommandLineMayHaveQuotes) {
  using Items = std::vector<std::string>;
  const auto frozen = [](const std::string& value) {
    return parse("", {"freeze_modules=" + value}).freeze_modules;
  };
  for (const char* value :
       {R"(["a","b"])", R"(["a", "b"])", R"(['a', "b"])", R"("a","b")", R"("a" 'b')"})
    EXPECT_EQ(frozen(value), (Items{"a", "b"})) << value;
  EXPECT_EQ(frozen(R"(["layers.[0-9]","lm_head"])"), (Items{"layers.[0-9]", "lm_head"}));
  EXPECT_EQ(frozen(R"(["a b","c,d"])"), (Items{"a b", "c,d"}));
  for (const char* value : {R"(["a])", R"(["a"b])", R"([""])", R"(["a","a"])"})
    EXPECT_TRUE(contains(user_error_of([&] { frozen(value); }), "expected a list of names"))
        << value;
}

// OpenAI and ms-swift ask for log-probabilities by a word, vLLM by a number.
TEST(Recipe, LogProbabilitiesAreAskedForByAWordOrANumber) {
  for (const auto& [text, number] : std::map<std::string, int64_t>{
           {"", -1}, {"true", 0}, {"false", -1}, {"null", -1}, {"5", 5}, {"0", 0}})
    EXPECT_EQ(parse("logprobs: " + text).logprobs, number) << text;
  EXPECT_EQ(parse("top_logprobs: 3").logprobs, 3);
}

TEST(Recipe, LoadsFiles) {
  const TemporaryFolder folder;
  const auto path = folder.write("r.yaml", "\xef\xbb\xbfseed: 5\r\nlora_r: null\r\n");
  EXPECT_EQ(load_recipe(path.string(), {"max_steps=3"}).seed, 5);
  EXPECT_EQ(load_recipe("", {"max_steps=3"}).max_steps, 3);
  EXPECT_TRUE(
      contains(user_error_of([] { load_recipe("no/r.yaml", {}); }), "cannot read no/r.yaml"));
}

TEST(RecipeKeys, TheTableIsSound) {
  std::set<std::string_view> names;
  for (const RecipeKey& key : recipe_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    for (const std::string_view alias : key.aliases)
      EXPECT_TRUE(names.insert(alias).second) << alias;
    if (key.field.get == nullptr) continue;
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_NE(key.verbs, 0) << key.name;
    EXPECT_TRUE(key.default_text.empty() || key.computed_default.empty()) << key.name;
    EXPECT_EQ(key.field.type == ValueType::choice, !key.choices.empty()) << key.name;
  }
}

TEST(RecipeKeys, HelpShowsTypeDefaultAndAliases) {
  const std::string help = recipe_help(Verb::train);
  EXPECT_TRUE(contains(help, "lr_scheduler_type"));
  EXPECT_TRUE(contains(help, "constant|constant_with_warmup|linear|cosine|"));
  EXPECT_TRUE(
      contains(help,
               "(default 2e-4 for lora and qlora, 3e-3 for adapter and adapter_v2, 1e-5 for full; "
               "5e-6, 7.5e-5 and 1e-6 with objective=dpo, orpo, kto or simpo)"));
  EXPECT_TRUE(contains(help,
                       "(default this machine's own file in ~/.cache/snug, else the card's data "
                       "sheet, else assumed rates)"));
  EXPECT_TRUE(contains(help, "also: micro_batch_size, batch_size"));
  EXPECT_EQ(help.find("load_in_8bit"), std::string::npos);
  EXPECT_TRUE(contains(recipe_help(Verb::score), "logits_out"));
}

// Given or not: the recipe that a run writes has all keys.
TEST(Recipe, TellsWhichKeysHoldTheirDefaults) {
  const Recipe recipe = parse("beta: 0.10\nlora_r: 4\n");
  EXPECT_TRUE(holds_default(recipe, "beta"));
  EXPECT_TRUE(holds_default(recipe, "loss_type"));
  EXPECT_FALSE(holds_default(recipe, "lora_r"));
  EXPECT_FALSE(holds_default(parse("beta: 0.2"), "beta"));
}

// For people: what a run's maker decided, which is read back to the same job.
TEST(Recipe, IsPrintedWithoutWhatHoldsItsDefault) {
  const Recipe recipe = parse_recipe("model: m\nmethod: lora\ndata: d.jsonl\nseed: 3\n", "r.yaml");
  const std::string changed = changed_to_yaml(recipe);
  for (const char* line : {"model: m\n", "method: lora\n", "data: d.jsonl\n", "seed: 3\n"})
    EXPECT_NE(changed.find(line), std::string::npos) << changed;
  for (const char* key : {"warmup_ratio", "eval_data", "beta:"})
    EXPECT_EQ(changed.find(key), std::string::npos) << changed;
  EXPECT_EQ(to_yaml(parse_recipe(changed, "changed.yaml")), to_yaml(recipe));
}

}  // namespace
}  // namespace snug::formats
