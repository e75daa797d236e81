#include "convert/gguf/byte_level_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/sha256.h"
#include "convert/gguf/probe_texts.h"
#include "text/tokenizer/model/growth.h"

namespace snug::convert {

const std::string_view kFingerprintText =
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n🚀 (normal) 😶\u200d🌫\ufe0f (multiple "
    "emojis concatenated) ✅ 🦙🦙 3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3 "
    "កាន់តែពិសេសអាច😁 ?我想在apple工作1314151天～ ------======= нещо на Български "
    "''''''```````\"\"\"\"......!!!!!!?????? "
    "I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, 'D you like "
    "some tea? We'Ve a'lL";

namespace {

using nlohmann::json;

// The first 16 digits of SHA-256 of the list of ids as Python prints it.
constexpr auto kFingerprints = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"b0a6b1c0bd5998eb", "a.x-4.0"},
    {"3c30d3ad1d6b6420", "bloom"},
    {"81d72c7348a9f0eb", "chatglm-bpe"},
    {"b6e8e1518dc4305b", "chatglm-bpe"},
    {"7b3e7548e4308f52", "codeshell"},
    {"9c2227e4dd922002", "command-r"},
    {"a8594e3edff7c29c", "dbrx"},
    {"347715f544604f91", "deepseek-coder"},
    {"049ecf7629871e30", "deepseek-llm"},
    {"b3f499bb4255f8ca", "deepseek-r1-qwen"},
    {"877081d19cf6996e", "deepseek-v3"},
    {"4e2b24cc4770243d", "exaone"},
    {"2085e1638f6c377a", "exaone4"},
    {"862f827721df9560", "f2llmv2"},
    {"8aeee3860c56296a", "falcon"},
    {"3eda48b4c4dc7de7", "falcon-h1"},
    {"48f8e02c0359c0bb", "falcon-h1"},
    {"60476e1243776c4f", "falcon-h1"},
    {"a6b57017d60e6edb", "falcon-h1"},
    {"9d032fcbd5501f4a", "falcon3"},
    {"ad851be1dba641f2", "gigachat"},
    {"9ca2dd618e8afaf0", "glm4"},
    {"a1336059768a55c9", "glm4"},
    {"cdf5f35325780597", "glm4"},
    {"0fe1cf6eda062318", "gpt-2"},
    {"3ce83efda5659b07", "gpt-2"},
    {"ccc2ef013c104be7", "gpt-4o"},
    {"bc01ce58980e1db4", "gpt3-finnish"},
    {"53e325976a6e1423", "granite-docling"},
    {"7e57df22b1fe23a7", "hunyuan"},
    {"b53802fb28e26d64", "jais"},
    {"e4d54df1ebc1f2b9", "kanana2"},
    {"4a2e2abae11ca2b8", "kormo"},
    {"169bf0296a13c4d9", "lfm2"},
    {"9e454714343b69b9", "lfm2"},
    {"0ef9807a4087ebef", "llama-bpe"},
    {"d353350c764d8c3b", "llama4"},
    {"d4c8f286ea6b520b", "megrez"},
    {"a1e163ecab2e718a", "mellum"},
    {"9dcf830ee9990cdb", "mellum2"},
    {"f6791d196f87ce6b", "midm-2.0"},
    {"1431a23e583c9743", "minerva-7b"},
    {"36f3066e97b7f399", "minicpm5"},
    {"b6dc8df998e1cfbd", "olmo"},
    {"fcace8b9cac38ce8", "phi-2"},
    {"0e9433cbbb161f89", "pixtral"},
    {"c7ea5862a53e4272", "poro-chat"},
    {"d4540891389ea895", "qwen2"},
    {"e636dc30a262dcc0", "qwen2"},
    {"1444df51289cfa80", "qwen35"},
    {"d30d75d9059f1aa2", "qwen35"},
    {"6221ad2852e85ce9", "refact"},
    {"d5f1dd6f980fec56", "seed-coder"},
    {"c136ed14d01c2745", "smaug-bpe"},
    {"855059429035d75a", "smollm"},
    {"32d85c31273f8019", "stablelm2"},
    {"35d91631860c815f", "starcoder"},
    {"63b97e4253352e6f", "tekken"},
    {"1994ffd01900cfb3", "trillion"},
    {"7fc505bd3104ca10", "viking"},
});

json split_step(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

json digits_step(bool individual) {
  return {{"type", "Digits"}, {"individual_digits", individual}};
}

json byte_level_step(bool divides) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", divides}};
}

std::string sequence_text(json steps) {
  if (steps.size() == 1) return steps[0].dump();
  return json{{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}.dump();
}

// The words that a pattern finds, and their bytes.
std::string patterns_text(const std::vector<std::string>& all) {
  json steps = json::array();
  for (const std::string& pattern : all) steps.push_back(split_step(pattern));
  steps.push_back(byte_level_step(false));
  return sequence_text(std::move(steps));
}

// Words of cl100k_base, with the given run of digits and run of letters.
std::string cl100k(const char* number, const char* letters = "\\p{L}", const char* marks = "") {
  return std::string("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?") + letters + "+|" +
         number + "| ?[^\\s\\p{L}" + marks + "\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
}

// Words of o200k_base, which end where lower case is followed by upper case.
std::string o200k(const std::string& contraction, const char* number) {
  const std::string start = "[^\\r\\n\\p{L}\\p{N}]?";
  const std::string upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
  const std::string lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
  return start + upper + "*" + lower + "+" + contraction + "|" + start + upper + "+" + lower + "*" +
         contraction + "|" + number +
         "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
}

constexpr const char* kChinese = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";
constexpr const char* kKana = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr const char* kLatin =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-Ჺ)"
    R"(Ჽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝ)"
    R"(ℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀)"
    R"(-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
constexpr const char* kPunctuation =
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+";
constexpr const char* kDeepseekWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSeedWords =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";
constexpr const char* kBloomWords = " ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+";

std::vector<ByteLevelRule> make_rules() {
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
  const std::string single = sequence_text({digits_step(true), byte_level_step(true)});
  const std::string words = byte_level_step(true).dump();
  const std::string cl100k_threes = patterns_text({cl100k("\\p{N}{1,3}")});
  return {
      {.names = {"gpt-2", "phi-2", "jais", "gigachat", "a.x-4.0", "mellum", "exaone4", "trillion",
                 "granite-docling"},
       .pre_tokenizer = words},
      {.names = {"olmo", "mpt"}, .pre_tokenizer = words, .composes = true},
      {.names = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b",
                 "mellum2"},
       .pre_tokenizer = single},
      {.names = {"qwen2", "deepseek-r1-qwen", "stablelm2", "kormo", "f2llmv2", "megrez", "hunyuan"},
       .pre_tokenizer = patterns_text({cl100k("\\p{N}")}),
       .composes = true},
      {.names = {"qwen35"},
       .pre_tokenizer = patterns_text({cl100k("\\p{N}", "[\\p{L}\\p{M}]", "\\p{M}")}),
       .composes = true},
      {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0",
                 "lfm2"},
       .pre_tokenizer = cl100k_threes,
       .ignores_merges = true,
       .adds_bos = true},
      {.names = {"glm4"}, .pre_tokenizer = cl100k_threes, .ignores_merges = true},
      {.names = {"dbrx", "smaug-bpe", "chatglm-bpe"}, .pre_tokenizer = cl100k_threes},
      {.names = {"minicpm5"},
       .pre_tokenizer = patterns_text({"\\p{N}{1,3}", cl100k("\\p{N}+")}),
       .ignores_merges = true},
      {.names = {"gpt-4o", "llama4", "kanana2"},
       .pre_tokenizer = patterns_text({o200k(contraction, "\\p{N}{1,3}")})},
      {.names = {"tekken"},
       .pre_tokenizer = patterns_text({o200k("", "\\p{N}")}),
       .ignores_merges = true,
       .adds_bos = true},
      {.names = {"falcon"},
       .pre_tokenizer = sequence_text({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                       byte_level_step(true),
                                       digits_step(false),
                                       split_step("[0-9][0-9][0-9]")})},
      {.names = {"bloom", "poro-chat", "gpt3-finnish"},
       .pre_tokenizer = patterns_text({kBloomWords})},
      {.names = {"viking"},
       .pre_tokenizer =
           sequence_text({split_step(kBloomWords), digits_step(true), byte_level_step(false)})},
      {.names = {"deepseek-llm"},
       .pre_tokenizer = sequence_text(
           {split_step("[\r\n]"), split_step(kLatin), split_step(kPunctuation), split_step("\\s+$"),
            split_step(kChinese), digits_step(true), byte_level_step(false)})},
      {.names = {"deepseek-coder"},
       .pre_tokenizer = sequence_text({split_step("[\r\n]"), split_step("\\s?\\p{L}+"),
                                       split_step("\\s?\\p{P}+"), split_step(kChinese),
                                       digits_step(true), byte_level_step(false)})},
      {.names = {"deepseek-v3"},
       .pre_tokenizer = patterns_text({"\\p{N}{1,3}", kKana, kDeepseekWords})},
      {.names = {"seed-coder"}, .pre_tokenizer = patterns_text({kSeedWords})},
  };
}

std::vector<std::string> words_of(const text::PreTokenizer& pre_tokenizer, std::string_view text) {
  text::Words words;
  words.buffer = text;
  words.list.assign(1, {0, text.size(), 0});
  words.most = text::most_bytes_from(text.size());
  pre_tokenizer.apply(words);
  std::vector<std::string> result;
  for (const text::Words::Word& word : words.list)
    result.push_back(words.buffer.substr(word.begin, word.end - word.begin));
  return result;
}

}  // namespace

const std::vector<ByteLevelRule>& byte_level_rules() {
  static const std::vector<ByteLevelRule> kRules = make_rules();
  return kRules;
}

bool divides_alike(const text::PreTokenizer& own, const ByteLevelRule& rule) {
  const json document = base::parse_json(rule.pre_tokenizer, "the table of rules");
  const auto other = text::read_pre_tokenizer({document, "tokenizer.json", "pre_tokenizer"});
  const auto is_alike = [&](std::string_view text) {
    return words_of(own, text) == words_of(*other, text);
  };
  return is_alike(kFingerprintText) && std::ranges::all_of(kOrdinaryTexts, is_alike) &&
         std::ranges::all_of(kProbeTexts, is_alike);
}

const ByteLevelRule* find_byte_level_rule(std::string_view name) {
  for (const ByteLevelRule& rule : byte_level_rules())
    if (std::ranges::find(rule.names, name) != rule.names.end()) return &rule;
  return nullptr;
}

const ByteLevelRule* matching_byte_level_rule(const text::PreTokenizer& own, bool ignores_merges) {
  const ByteLevelRule* found = nullptr;
  for (const ByteLevelRule& rule : byte_level_rules()) {
    if (found != nullptr && rule.ignores_merges != ignores_merges) continue;
    if (!divides_alike(own, rule)) continue;
    if (rule.ignores_merges == ignores_merges) return &rule;
    found = &rule;
  }
  return found;
}

std::string_view name_of_fingerprint(const std::vector<int32_t>& ids) {
  const std::string digest = base::sha256_hex(fmt::format("[{}]", fmt::join(ids, ", ")));
  for (const auto& [start, name] : kFingerprints)
    if (digest.starts_with(start)) return name;
  return {};
}

}  // namespace snug::convert
