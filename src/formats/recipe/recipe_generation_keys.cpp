#include "formats/recipe/recipe_table.h"

namespace snug::formats {
namespace {

// Far above any useful value, but low enough that the penalty of a token that an answer has a
// million times is still a number that logits can have.
constexpr double kMaxPenalty = 1000;

// A run of a decode program verifies no more (plan/job/inference_shape.h).
constexpr int64_t kMostGuesses = 15;

// Those that learning from rewards reads, too, whose answers are sampled.
constexpr uint8_t kSampling = kTraining | kGenerate | kServe;

void add_sampling_keys(KeyTable& table) {
  table
      .add<&Recipe::temperature>("temperature", "1",
                                 "temperature of sampling; 0: always the likeliest token")
      .range({.least = 0, .most = kMaxFloat})
      .verbs(kSampling)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::top_k>("top_k", "0",
                           "sample from this many of the likeliest tokens; 0: from all")
      .range({.least = 0, .most = kMaxIds})
      .verbs(kSampling)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::top_p>("top_p", "1",
                           "sample from the likeliest tokens whose probabilities add up to this")
      .range({.least = 0, .most = 1, .least_excluded = true})
      .verbs(kSampling)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::min_p>("min_p", "0",
                           "sample from the tokens whose probability is at least this share of the "
                           "likeliest one's; 0: from all")
      .range(kFraction)
      .verbs(kSampling)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::repetition_penalty>(
          "repetition_penalty", "1",
          "above 1: tokens of the prompt and of the answer so far become less likely, by "
          "transformers' rule; 1: no penalty")
      .range({.least = 0, .most = kMaxFloat, .least_excluded = true})
      .verbs(kSampling)
      .on_resume(OnResume::free);
  table
      .add<&Recipe::presence_penalty>(
          "presence_penalty", "0",
          "taken from the logit of each token that the answer has already, as OpenAI defines it; "
          "below 0: such tokens become likelier")
      .range({.least = -kMaxPenalty, .most = kMaxPenalty})
      .verbs(kGenerate | kServe);
  table
      .add<&Recipe::frequency_penalty>("frequency_penalty", "0",
                                       "taken from the logit of a token once for each time that "
                                       "the answer has it, as OpenAI defines it")
      .range({.least = -kMaxPenalty, .most = kMaxPenalty})
      .verbs(kGenerate | kServe);
  table
      .add<&Recipe::logprobs>("logprobs", "-1",
                              "with each new token its log-probability and those of this many of "
                              "the likeliest; 0: its own alone; -1: none")
      .aliases({"top_logprobs"})
      .translations({{"true", "0"}, {"false", "-1"}})
      .range({.least = -1, .most = kMaxIds});
}

// What adapters take is planned by mode=serve, too.
void add_adapters_keys(KeyTable& table) {
  constexpr uint8_t kUsers = kGenerate | kServe | bit(Verb::plan);
  table
      .add<&Recipe::adapters>("adapters", "",
                              "LoRA adapters that each request chooses from, as NAME=FOLDER: a "
                              "prompt of a file by its field adapter, a chat by /adapter NAME")
      .aliases({"lora_modules"})
      .verbs(kUsers);
  table
      .add<&Recipe::max_adapters>("max_adapters", "0",
                                  "places for adapters that requests choose from; 0: as many as "
                                  "adapters names")
      .aliases({"max_loras"})
      .range({.least = 0, .most = 4096})
      .verbs(kUsers);
  table
      .add<&Recipe::max_adapter_rank>("max_adapter_rank", "0",
                                      "the largest rank that such an adapter may have; 0: that of "
                                      "those that adapters names")
      .aliases({"max_lora_rank"})
      .range({.least = 0, .most = 65536})
      .verbs(kUsers);
}

}  // namespace

void add_generation_keys(KeyTable& table) {
  table.group("Generating and scoring", kGenerate, OnResume::ignored);
  table.add<&Recipe::prompt>("prompt", "", "the text to continue").verbs(kGenerate | kScore);
  table
      .add<&Recipe::prompts>("prompts", "",
                             "a file of prompts in place of prompt: a JSON object in each line")
      .aliases({"prompts_file", "input_file"});
  table.add<&Recipe::prompt_format>(
      "prompt_format", PromptFormat::raw,
      "what is put around the prompt: raw: nothing; alpaca: the Alpaca "
      "form of an instruction; chat: the chat template's form of a "
      "user's message");
  table
      .add<&Recipe::system>("system", "",
                            "prompt_format=chat: the system message that comes before the prompt")
      .aliases({"system_prompt"});
  table.add<&Recipe::ids>("ids", "", "token ids in place of a prompt, such as \"1 5 9\"")
      .range({.least = 0, .most = kMaxIds})
      .verbs(kGenerate | kScore);
  table.add<&Recipe::answer>("answer", "", "encoder-decoders: the answer to score").verbs(kScore);
  table.add<&Recipe::answer_ids>("answer_ids", "", "token ids in place of an answer, as ids")
      .range({.least = 0, .most = kMaxIds})
      .verbs(kScore);
  table
      .add<&Recipe::max_new_tokens>("max_new_tokens", "128",
                                    "largest number of tokens to generate; in "
                                    "training, of an answer that an evaluation asks for")
      .range({.least = 1, .most = kMaxTokens})
      .verbs(kTraining | kGenerate | kEvaluate | kServe);
  add_sampling_keys(table);
  table
      .add<&Recipe::stop>("stop", "",
                          "texts that end the answer, which is cut before them: one text, or a "
                          "list such as [\"###\", \"User:\"]")
      .aliases({"stop_strings", "stop_sequences"})
      .whole_texts();
  table
      .add<&Recipe::regex>("regex", "",
                           "a regular expression in Python's syntax that the whole answer matches")
      .aliases({"guided_regex"});
  table.add<&Recipe::json_schema>(
      "json_schema", "", "a file with a JSON schema: the answer is JSON that is valid under it");
  table
      .add<&Recipe::batch>("batch", "32",
                           "questions, or prompts of a file, that are answered side by side (in "
                           "training, those of an evaluation); for bench decode, copies of its "
                           "prompt (default 1 there); for serve, answers (default 8 there)")
      .range({.least = 1, .most = kMaxSequences})
      .verbs(kTraining | kGenerate | kEvaluate | kServe);
  table
      .add<&Recipe::kv_cache_dtype>(
          "kv_cache_dtype", CacheDtype::automatic,
          "the type in which keys and values of tokens are kept: auto: that of the computation; "
          "int8: 8 bits and a scale for each token and head, about half of the memory")
      .not_built({"fp8", "fp8_e4m3", "fp8_e5m2"},
                 "keys and values are kept in 8 bits as whole numbers with a scale for each token "
                 "and head: kv_cache_dtype: int8")
      .not_built({"int4", "q4_0", "nf4"}, "the smallest type of keys and values is int8")
      .verbs(bit(Verb::plan) | kGenerate | kScore | kEvaluate | kServe);
  table
      .add<&Recipe::prompt_lookup_num_tokens>(
          "prompt_lookup_num_tokens", "0",
          "temperature=0: so many tokens are guessed from what followed the last ones earlier in "
          "the prompt or the answer, and verified in one run; 0: none")
      .range({.least = 0, .most = kMostGuesses});
  table
      .add<&Recipe::output>("output", "",
                            "the file that the answers are written to: a JSON object in each line")
      .aliases({"output_file"});
  add_adapters_keys(table);
  table.add<&Recipe::tasks>("tasks", "", "a YAML file of tasks to evaluate, in place of data")
      .verbs(kEvaluate);
  table
      .add<&Recipe::stride>("stride", "512",
                            "perplexity of texts: how many tokens after one window of max_length "
                            "the next one begins")
      .range({.least = 1, .most = kMaxTokens})
      .verbs(kEvaluate);
  table
      .add<&Recipe::logits_out>("logits_out", "",
                                "write the logits, fp32 (tokens, vocab), to this safetensors file")
      .verbs(kScore);
}

}  // namespace snug::formats
