// Stages: collect the texts and lists of turns of the record with their paths; then try the forms
// in the order of how much they explain: turns, pairs of answers, a prompt with its answer, text.
#include "text/audit/proposed_mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/json_parser.h"
#include "text/record/message_role.h"
#include "text/unicode/blank.h"

namespace snug::text {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::span<const std::string_view>;

// Words that name a field, in lower case, the likeliest first.
constexpr auto kPromptNames = std::to_array<std::string_view>(
    {"prompt",    "question", "instruction", "query",     "problem",  "request",
     "task",      "user",     "human",       "input",     "source",   "src",
     "ask",       "frage",    "pregunta",    "pergunta",  "domanda",  "demande",
     "anweisung", "consigne", "instruccion", "instrução", "вопрос",   "问题",
     "問題",      "提问",     "質問",        "指令",      "指示",     "질문",
     "سؤال",      "prompts",  "questions",   "utterance", "customer", "q"});
constexpr auto kAnswerNames = std::to_array<std::string_view>(
    {"completion",  "answer",    "response",    "solution", "output",    "reply",
     "target",      "assistant", "bot",         "gpt",      "summary",   "highlights",
     "translation", "antwort",   "respuesta",   "réponse",  "reponse",   "resposta",
     "risposta",    "ответ",     "回答",        "答案",     "答え",      "回复",
     "답변",        "جواب",      "completions", "answers",  "responses", "results",
     "result",      "tgt",       "explanation", "a"});
constexpr auto kContextNames =
    std::to_array<std::string_view>({"context", "passage", "background", "kontext", "contexto",
                                     "contexte", "上下文", "コンテキスト"});
constexpr auto kSystemNames = std::to_array<std::string_view>({"system", "persona"});
constexpr auto kTextNames = std::to_array<std::string_view>(
    {"text", "content", "body", "document", "article", "story", "passage", "markdown", "code"});
constexpr auto kBetterNames = std::to_array<std::string_view>(
    {"chosen", "preferred", "better", "winner", "good", "positive", "accepted", "best"});
constexpr auto kWorseNames = std::to_array<std::string_view>(
    {"rejected", "dispreferred", "nonpreferred", "worse", "loser", "bad", "negative", "worst"});
constexpr auto kSpeakerNames =
    std::to_array<std::string_view>({"role", "from", "speaker", "author", "sender", "who", "name",
                                     "type", "actor", "rolle", "角色"});
constexpr auto kWordsNames = std::to_array<std::string_view>(
    {"content", "value", "text", "message", "utterance", "words", "body", "said", "内容"});
constexpr auto kUserRoles = std::to_array<std::string_view>(
    {"customer", "client", "patient", "student", "caller", "q", "question", "asker", "buyer",
     "kunde", "usuario", "usuário", "utilisateur", "cliente", "用户", "ユーザー", "caller",
     "guest"});
constexpr auto kAssistantRoles = std::to_array<std::string_view>(
    {"agent", "doctor", "teacher", "tutor", "support", "advisor", "expert", "a", "answer", "seller",
     "asistente", "assistente", "helper", "助手", "客服", "operator", "therapist", "narrator"});

// A field with a text, or a list of turns.
struct Place {
  std::string path;
  const Json* value = nullptr;
};

// "Model Answer", "modelAnswer" and "model_answer" are the words model and answer.
std::vector<std::string> name_words(std::string_view path) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool after_lower = i > 0 && path[i - 1] >= 'a' && path[i - 1] <= 'z';
    const bool is_border = c == '_' || c == '-' || c == '.' || c == ' ' || c == '/';
    if (is_border || (is_upper && after_lower)) words.emplace_back();
    if (!is_border) words.back() += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  std::erase(words, "");
  return words;
}

// How well a path has one of the names: its last words count, and the first names most. 0: not.
size_t fit_of(std::string_view path, Names names) {
  const std::vector<std::string> words = name_words(path);
  const std::string joined = fmt::format("{}", fmt::join(words, ""));
  size_t best = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t rank = names.size() - i;
    if (joined == names[i]) best = std::max(best, 3 * names.size() + rank);
    if (names[i].size() < 2) continue;
    if (joined.find(names[i]) != std::string::npos && names[i].size() > 8)
      best = std::max(best, 2 * names.size() + rank);
    for (const std::string& word : words)
      if (word == names[i]) best = std::max(best, names.size() + rank);
  }
  return best;
}

bool is_text(const Json& value) {
  return value.is_string() && !is_blank(value.get_ref<const std::string&>());
}

bool is_turns(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& item) { return item.is_object(); });
}

const Place* best_place(std::span<const Place> places, Names names,
                        std::initializer_list<const Place*> taken = {}) {
  const Place* best = nullptr;
  size_t most = 0;
  for (const Place& place : places) {
    if (std::ranges::find(taken, &place) != taken.end()) continue;
    const size_t fit = fit_of(place.path, names);
    if (fit <= most) continue;
    most = fit;
    best = &place;
  }
  return best;
}

// Identifiers, links and dates are texts too, but say nothing that is learned.
bool is_label(const Place& place) {
  constexpr auto kLabels = std::to_array<std::string_view>(
      {"id", "name", "index", "uuid", "url", "date", "time", "timestamp", "hash", "source", "lang",
       "language", "license", "split", "category", "tag", "dataset", "topic", "key"});
  const std::vector<std::string> words = name_words(place.path);
  return !words.empty() && std::ranges::find(kLabels, words.back()) != kLabels.end();
}

bool is_one_word(const Json& text) {
  return text.get_ref<const std::string&>().find_first_of(" \n\t") == std::string::npos;
}

using Found = std::optional<ProposedMapping>;

// The keys of turns: that of the speaker, and that of the words.
struct TurnKeys {
  std::string speaker;
  std::string words;
};

std::optional<TurnKeys> turn_keys(const Json& turns) {
  std::vector<Place> places;
  for (const auto& [name, value] : turns[0].items())
    if (is_text(value)) places.push_back({name, &value});
  const Place* speaker = best_place(places, kSpeakerNames);
  if (speaker == nullptr) return std::nullopt;
  const Place* words = best_place(places, kWordsNames, {speaker});
  if (words == nullptr)
    for (const Place& place : places)
      if (&place != speaker && !is_label(place)) words = &place;
  if (words == nullptr) return std::nullopt;
  return TurnKeys{speaker->path, words->path};
}

void collect(const Json& value, const std::string& path, int depth, std::vector<Place>& places) {
  constexpr int kDeepest = 3;
  if (is_text(value) || is_turns(value)) places.push_back({path, &value});
  if (depth == kDeepest) return;
  const auto below = [&](const std::string& name) {
    return path.empty() ? name : path + "." + name;
  };
  if (value.is_object())
    for (const auto& [name, item] : value.items()) collect(item, below(name), depth + 1, places);
  if (!value.is_array() || value.empty()) return;
  const Json& first = value[0];
  if (is_text(first)) places.push_back({below("0"), &first});
  if (first.is_object() && value.size() == 1 && !turn_keys(value))
    collect(first, below("0"), depth + 1, places);
}

// Roles that Snug does not know: by their names, else in the order of speaking.
std::vector<ProposedMapping::Pair> roles_of(const Json& turns, const std::string& speaker) {
  std::vector<std::string> seen;
  for (const Json& turn : turns) {
    const auto role = turn.find(speaker);
    if (role == turn.end() || !role->is_string()) continue;
    const auto name = role->get<std::string>();
    if (std::ranges::find(seen, name) == seen.end()) seen.push_back(name);
  }
  std::vector<ProposedMapping::Pair> roles;
  bool has_user = false;
  for (const std::string& name : seen) {
    const auto known = known_role(name);
    has_user = has_user || (known && *known == "user");
    if (known) continue;
    const bool is_assistant =
        fit_of(name, kAssistantRoles) > 0 || (fit_of(name, kUserRoles) == 0 && has_user);
    roles.emplace_back(name, is_assistant ? "assistant" : "user");
    has_user = has_user || !is_assistant;
  }
  return roles;
}

void add_turns(ProposedMapping& mapping, const std::string& list, const Place& place,
               const TurnKeys& keys) {
  if (place.path != list) mapping.fields.emplace_back(list, place.path);
  if (keys.speaker != "role" && keys.speaker != "from")
    mapping.fields.emplace_back(list + ".role", keys.speaker);
  if (keys.words != "content" && keys.words != "value")
    mapping.fields.emplace_back(list + ".content", keys.words);
  const auto roles = roles_of(*place.value, keys.speaker);
  mapping.roles.insert(mapping.roles.end(), roles.begin(), roles.end());
}

Found propose_turns(std::span<const Place> places) {
  const Place* longest = nullptr;
  for (const Place& place : places)
    if (is_turns(*place.value) && turn_keys(*place.value) &&
        (longest == nullptr || place.value->size() > longest->value->size()))
      longest = &place;
  if (longest == nullptr) return std::nullopt;
  ProposedMapping mapping;
  add_turns(mapping, "messages", *longest, *turn_keys(*longest->value));
  return mapping;
}

Found propose_pair(std::span<const Place> places) {
  const Place* worse = best_place(places, kWorseNames);
  const Place* better = best_place(places, kBetterNames, {worse});
  if (worse == nullptr || better == nullptr) return std::nullopt;
  ProposedMapping mapping;
  if (const Place* prompt = best_place(places, kPromptNames, {worse, better}))
    mapping.fields.emplace_back("prompt", prompt->path);
  mapping.fields.emplace_back("chosen", better->path);
  mapping.fields.emplace_back("rejected", worse->path);
  return mapping;
}

// A prompt by its name, else the first text; an answer by its name, else the last one.
Found propose_answer(std::span<const Place> texts) {
  const Place* answer = best_place(texts, kAnswerNames);
  const Place* prompt = best_place(texts, kPromptNames, {answer});
  const auto other_than = [&](const Place* taken, bool last) {
    const Place* found = nullptr;
    for (const Place& place : texts)
      if (&place != taken && !is_label(place) && (last || found == nullptr)) found = &place;
    return found;
  };
  if (answer == nullptr) answer = other_than(prompt, true);
  if (prompt == nullptr) prompt = other_than(answer, false);
  if (answer == nullptr || prompt == nullptr) return std::nullopt;
  ProposedMapping mapping;
  const Place* context = best_place(texts, kContextNames, {prompt, answer});
  const Place* system = best_place(texts, kSystemNames, {prompt, answer, context});
  if (system != nullptr) mapping.fields.emplace_back("system", system->path);
  mapping.fields.emplace_back(
      "prompt", context == nullptr ? prompt->path
                                   : fmt::format("{{{}}}\n\n{{{}}}", context->path, prompt->path));
  mapping.fields.emplace_back("completion", answer->path);
  return mapping;
}

Found propose_text(std::span<const Place> texts) {
  const Place* text = best_place(texts, kTextNames);
  for (const Place& place : texts)
    if (text == nullptr && !is_label(place)) text = &place;
  if (text == nullptr) return std::nullopt;
  return ProposedMapping{.fields = {{"text", text->path}}};
}

// As YAML writes a text in a map: in quotes where it would mean something else.
std::string yaml_text(const std::string& text) {
  if (!text.empty() && text.find_first_of(" ,:{}[]\"'#\\&*!|>%@`=\n\t") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return quoted + "\"";
}

std::string map_text(std::string_view key, const std::vector<ProposedMapping::Pair>& pairs) {
  std::vector<std::string> items;
  items.reserve(pairs.size());
  for (const auto& [name, value] : pairs)
    items.push_back(fmt::format("{}: {}", yaml_text(name), yaml_text(value)));
  return fmt::format("{}={{{}}}", key, fmt::join(items, ", "));
}

}  // namespace

std::string ProposedMapping::text() const {
  std::vector<std::string> maps;
  if (!fields.empty()) maps.push_back(map_text("fields", fields));
  if (!roles.empty()) maps.push_back(map_text("roles", roles));
  return fmt::format("{}", fmt::join(maps, " "));
}

std::optional<ProposedMapping> propose_mapping(const Json& record) {
  if (!record.is_object()) return std::nullopt;
  std::vector<Place> places;
  collect(record, "", 0, places);
  // A path with braces would be read as a template.
  std::erase_if(places, [](const Place& place) {
    return place.path.find_first_of("{}") != std::string::npos;
  });
  std::vector<Place> texts;
  for (const Place& place : places)
    if (place.value->is_string() && !(is_label(place) && is_one_word(*place.value)))
      texts.push_back(place);
  if (const Found pair = propose_pair(places)) return pair;
  if (const Found turns = propose_turns(places); turns && !turns->text().empty()) return turns;
  if (const Found answer = propose_answer(texts)) return answer;
  return propose_text(texts);
}

std::optional<ProposedMapping> propose_mapping(const std::string& record) {
  try {
    return propose_mapping(base::parse_ordered_json(
        record, [](const std::string& problem, size_t) { base::throw_user_error("{}", problem); }));
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

}  // namespace snug::text
