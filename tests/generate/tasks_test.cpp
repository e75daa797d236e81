// Evaluation of tasks in the forms of lm-evaluation-harness: figures next to the harness's own
// (scripts/oracles/check_evaluate writes them), and what a tasks file is refused for.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/captured_stream.h"
#include "base/file.h"
#include "generate/evaluation/evaluate.h"
#include "generate/evaluation/figures.h"
#include "generate/evaluation/likelihoods.h"
#include "generate/evaluation/python_literal.h"
#include "generate/evaluation/python_random.h"
#include "generate/evaluation/scored_ids.h"
#include "generate/evaluation/task_file.h"
#include "generate/evaluation/text_match.h"
#include "golden_recipe.h"
#include "text/chat/jinja/values/print.h"

namespace snug::testing {
namespace {

using Json = nlohmann::json;

const std::string kEvaluation = kGoldens + "evaluation/";

Json evaluated(std::vector<std::string> words) {
  words.insert(words.begin(), "model=examples/wordnet");
  const CapturedStream output(stdout);
  EXPECT_EQ(generate::evaluate(recipe_of(std::move(words)), true), 0);
  return Json::parse(output.text());
}

Json expected_figures() { return Json::parse(base::read_text_file(kEvaluation + "expected.json")); }

// The harness draws one standard error by chance, and its softmax in fp32 is off by 4e-7 of each
// token's log-probability.
double tolerance_of(const std::string& key) {
  if (key == "perplexity_stderr,none") return 0.1;
  return key == "perplexity,none" ? 1e-5 : 1e-6;
}

// To 1e-6, relative, with their standard errors; and the texts of answers exactly. Which forms are
// compared: docs/evaluation.md.
TEST(Tasks, FiguresAreThoseOfTheHarness) {
  const Json expected = expected_figures();
  const Json ours = evaluated({"tasks=" + kEvaluation + "all.yaml"});
  for (const auto& [task, figures] : expected["figures"].items())
    for (const auto& [key, value] : figures.items()) {
      const Json& own = ours["results"][task][key];
      if (!value.is_number()) {
        EXPECT_TRUE(own.is_number()) << task << key;  // the harness gives none
        continue;
      }
      const double near = tolerance_of(key);
      EXPECT_NEAR(own.get<double>(), value.get<double>(), near * std::abs(value.get<double>()))
          << task << " " << key;
    }
  for (const char* task : {"hand_sums", "hand_kinds"}) {
    const Json& answers = expected["responses"][task];
    for (size_t i = 0; i < answers.size(); ++i)
      EXPECT_EQ(ours["samples"][task][i]["answer"], answers[i][0][0]);
  }
  for (const char* task : {"hand_choices", "hand_blanks", "hand_likely"}) {
    const Json& choices = expected["responses"][task];
    for (size_t i = 0; i < choices.size(); ++i)
      for (size_t choice = 0; choice < choices[i].size(); ++choice) {
        const Json& own = ours["samples"][task][i]["scored"][choice];
        EXPECT_NEAR(own["log_probability"].get<double>(), choices[i][choice][0][0].get<double>(),
                    1e-4)
            << task << i;
        EXPECT_EQ(own["is_greedy"], choices[i][choice][0][1]) << task << i;
      }
  }
  EXPECT_EQ(ours["documents"]["hand_texts"], 5);
}

// The number of texts that are read at once changes no figure.
TEST(Tasks, FiguresDoNotDependOnTheBatch) {
  const Json one = evaluated({"tasks=" + kEvaluation + "tasks/choices.yaml", "batch=1"});
  for (const auto& [key, value] : expected_figures()["figures"]["hand_choices"].items())
    EXPECT_NEAR(one["results"]["hand_choices"][key].get<double>(), value.get<double>(), 1e-12)
        << key;
}

class ProgramsInOrder final : public runtime::Executor::Observer {
 public:
  void before(const program::Program& program, size_t operation) override {
    if (operation == 0) names.push_back(program.name);
  }
  void after(const program::Program&, size_t) override {}
  std::vector<std::string> names;
};

// Six pages of a context of 100 tokens. The others read 7 tokens each, which are few.
TEST(Tasks, ChoicesReadTheirContextOnce) {
  const formats::Recipe recipe = golden_recipe("grouped_tied");
  const models::ModelSource model = runtime::open_model(recipe);
  std::vector<generate::ScoredIds> texts(3);
  for (unsigned i = 0; i < 3; ++i) {
    texts[i] = {.ids = random_ids(100, 137, 1), .scored = 4};
    for (const int32_t id : random_ids(4, 137, 2 + i)) texts[i].ids.push_back(id);
  }
  engine::Inference inference(recipe, model, generate::likelihood_shape(texts, 3));
  ProgramsInOrder programs;
  inference.executor().set_observer(&programs);
  const auto together = generate::likelihoods(inference, texts);
  inference.executor().set_observer(nullptr);
  EXPECT_EQ(programs.names, (std::vector<std::string>{"prefill", "prefill.32"}));
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto alone = generate::likelihoods(inference, std::span(texts).subspan(i, 1));
    ASSERT_EQ(together[i].log_probabilities.size(), 4U);
    for (size_t id = 0; id < 4; ++id)
      EXPECT_NEAR(together[i].log_probabilities[id], alone[0].log_probabilities[id], 1e-5);
  }
}

TEST(Tasks, PerplexityOfATextIsThatOfTheGuide) {
  const Json guide = expected_figures()["guide"];
  const Json ours = evaluated({"data=" + kEvaluation + "text.txt",
                               "max_length=" + std::to_string(guide["max_length"].get<int>()),
                               "stride=" + std::to_string(guide["stride"].get<int>())});
  const auto value = guide["perplexity"].get<double>();
  EXPECT_NEAR(ours["perplexity"].get<double>(), value, 1e-6 * value);
  EXPECT_GT(ours["perplexity_stderr"].get<double>(), 0);
}

TEST(Tasks, WindowsAreThoseOfTheGuide) {
  std::vector<int32_t> ids(10);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  const auto windows = generate::strided_windows(ids, 4, 3);
  std::vector<std::pair<std::vector<int32_t>, int64_t>> seen;
  for (const auto& window : windows) seen.emplace_back(window.ids, window.scored);
  const decltype(seen) expected{{{0, 1, 2, 3}, 3}, {{3, 4, 5, 6}, 3}, {{6, 7, 8, 9}, 3}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(generate::strided_windows(ids, 4, 4)[1].scored, 3);  // its first id is not scored
}

// Expected values: lm_eval.api.metrics.mean_stderr; the delta method, by hand.
TEST(Tasks, StandardErrors) {
  const std::vector<double> scores{1, 0, 0, 1, 1};
  EXPECT_NEAR(*generate::mean_figure(scores).standard_error, 0.24494897427831783, 1e-15);
  EXPECT_FALSE(generate::mean_figure(std::vector<double>{1}).standard_error);
  const auto perplexity = generate::perplexity_figure(std::vector<double>{-1, -3});
  EXPECT_NEAR(perplexity.value, std::exp(2.0), 1e-12);
  EXPECT_NEAR(*perplexity.standard_error, std::exp(2.0), 1e-12);
  const std::vector<generate::Weighed> texts{{-2, 1}, {-2, 3}};
  EXPECT_NEAR(generate::weighed_perplexity_figure(texts).value, std::exp(1.0), 1e-12);
  EXPECT_NEAR(*generate::weighed_perplexity_figure(texts).standard_error,
              std::exp(1.0) * std::sqrt(2.0 * 2.0) / 4, 1e-12);
  EXPECT_NEAR(generate::bits_figure(texts).value, 1 / std::log(2.0), 1e-12);
}

// Expected values: Python's random.Random(1234).
TEST(Tasks, DrawsExamplesAsPythonDoes) {
  generate::PythonRandom random(1234);
  EXPECT_EQ(random.sample(10, 3), (std::vector<size_t>{7, 1, 0}));
  EXPECT_EQ(random.sample(1000, 3), (std::vector<size_t>{92, 932, 965}));
  EXPECT_EQ(random.sample(30, 8), (std::vector<size_t>{25, 18, 1, 21, 22, 2, 3, 11}));
}

// Expected values: Python's ast.literal_eval.
TEST(Tasks, ReadsPythonsLiterals) {
  const auto read = [](std::string_view text) {
    const auto value = generate::python_literal(text);
    return value ? text::jinja::print(*value) : "none";
  };
  EXPECT_EQ(read(R"(['it\'s', "b" 'c', '\u00e9'])"), R"(["it's", 'bc', 'é'])");
  EXPECT_EQ(read("[1, -2.5, True, None, ('a',)]"), "[1, -2.5, True, None, ('a',)]");
  for (const char* text : {"[a]", "['a'", "['a' 1]", "['a']]", "", "['\n']"})
    EXPECT_EQ(read(text), "none") << text;
}

// Expected values: by the rules of the harness's exact_match and RegexFilter.
TEST(Tasks, ComparesAndFilters) {
  generate::MatchRules rules{.ignores_case = true, .ignores_punctuation = true};
  rules.ignored.emplace_back(R"(\$)");
  EXPECT_TRUE(rules.matches("$The End!", "the end"));
  EXPECT_FALSE(rules.matches("The  End", "the end"));
  generate::MatchChoice last{.pattern = base::PythonPattern(R"((-?[$0-9.,]{2,})|(-?[0-9]+))"),
                             .number = -1};
  EXPECT_EQ(last("3 and 14 make 17"), "17");
  EXPECT_EQ(last("3 and 5"), "5");
  EXPECT_EQ(last("no number"), "[invalid]");
}

TEST(Tasks, RefusesKeysOfTheRecordsOfData) {
  for (const char* word :
       {"chat_template=plain", "data_format=text", "fields={question: q}", "roles={user: u}",
        "ignore_fields=id", "on_bad_record=skip", "max_skipped=0.5"}) {
    const std::string error = user_error_of([&] {
      evaluated({"tasks=" + kEvaluation + "tasks/choices.yaml", word});
    });
    EXPECT_TRUE(contains(error, "is about the records of data")) << word << error;
  }
}

// The records of texts are read by the same keys as those of questions.
TEST(Tasks, PerplexityReadsRecordsAsTheKeysSay) {
  const TemporaryFolder folder;
  const auto plain = folder.write("plain.jsonl",
                                  "{\"text\": \"The oregano is a herb.\"}\n"
                                  "{\"text\": \"The dog is an animal.\"}\n");
  const auto named = folder.write("named.jsonl",
                                  "{\"story\": \"The oregano is a herb.\", \"label\": true}\n"
                                  "{\"story\": \"The dog is an animal.\"}\n"
                                  "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  const std::string stride = "stride=64";
  const Json expected = evaluated({"data=" + plain.string(), stride});
  const std::vector<std::string> words{"data=" + named.string(), stride, "fields={text: story}",
                                       "ignore_fields=label"};
  const Json ours = evaluated(words);
  EXPECT_EQ(ours["perplexity"], expected["perplexity"]);
  EXPECT_EQ(ours["texts"], 2);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return user_error_of([&] { evaluated(all); });
  };
  const std::string bad = refused({"on_bad_record=error"});
  EXPECT_TRUE(contains(bad, "named.jsonl:3")) << bad;
  EXPECT_TRUE(contains(bad, "has no 'story'")) << bad;
  const auto pairs = folder.write("pairs.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  const std::string form = user_error_of([&] { evaluated({"data=" + pairs.string(), stride}); });
  EXPECT_TRUE(contains(form, "of the form prompt_completion, and perplexity")) << form;
  EXPECT_TRUE(contains(refused({"data.repeats=2"}), "each text is scored once"));
  EXPECT_EQ(evaluated({"data=" + plain.string(), stride, "data.limit=1"})["texts"], 1);
  const std::string limit = user_error_of([&] {
    evaluated({"data=" + kEvaluation + "text.txt", stride, "data.limit=1"});
  });
  EXPECT_TRUE(contains(limit, "has a limit")) << limit;
}

// What is wrong with one task, of which these lines replace or add to those of the first.
std::string refusal(const TemporaryFolder& folder, const std::string& lines) {
  folder.write("data.jsonl", R"({"q": "a", "c": ["x", "y"], "n": 1})"
                             "\n");
  const std::string task =
      "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: data.jsonl}}\n"
      "test_split: test\ndoc_to_text: q\ndoc_to_target: q\n";
  const auto path = folder.write("t.yaml", task + lines);
  return user_error_of([&] { generate::read_tasks(path.string()); });
}

TEST(Tasks, WhatIsNotUnderstoodIsRefusedByNameAndLine) {
  const TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases{
      {"procss: 1\n", "t.yaml:7:9: 'procss' is not understood"},
      {"process_docs: !function utils.f\n", "'process_docs' is a Python function"},
      {"output_type: generate\n", "'output_type' is generate; expected multiple_choice"},
      {"fewshot_config: {sampler: balanced}\n", "expected default, which draws, or first_n"},
      {"metric_list: [{metric: bleu}]\n", "these are built: exact_match"},
      {"filter_list: [{name: a, filter: [{function: majority_vote}]}]\n", "only these filters"},
      {"filter_list: [{name: a, filter: [{function: regex, regex_pattern: '('}]}]\n", "'('"},
      {"generation_kwargs: {num_beams: 4}\n", "'num_beams' is not understood"},
      {"repeats: 3\n", "asked once"},
      {"metric_list:\n- metric: exact_match\n- metric: exact_match\n  ignore_case: true\n",
       "t.yaml:9:3: 'metric_list' names the metric exact_match for the second time"},
      {"num_fewshot: -1\n", "t.yaml:7:14: 'num_fewshot' is below 0"},
      {"generation_kwargs: {temperature: .nan}\n", "needs a temperature"},
      {"generation_kwargs: {temperature: .inf}\n", "needs a temperature"},
      {"generation_kwargs: {top_p: .nan}\n", "needs a top_k"},
      {"doc_to_choice: {a: [x]}\n", "'doc_to_choice' is no text"},
      {"doc_to_choice: [a, [x]]\n", "'doc_to_choice' is no text"},
      {"'': 1\n", "t.yaml:7:5: this is not understood"},
      {"validation_split: [\n", "no valid YAML"}};
  for (const auto& [lines, part] : cases)
    EXPECT_TRUE(contains(refusal(folder, lines), part)) << lines << refusal(folder, lines);
}

// Choices that a template makes of fields that are missing are no list; the message shows them.
TEST(Tasks, ChoicesThatAreNoListAreShown) {
  const TemporaryFolder folder;
  folder.write("data.jsonl", "{\"q\": \"a\"}\n");
  const auto tasks = folder.write(
      "t.yaml",
      "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: data.jsonl}}\n"
      "test_split: test\ndoc_to_text: q\ndoc_to_target: 0\ndoc_to_choice: '{{[q, other]}}'\n"
      "output_type: multiple_choice\n");
  const std::string error = user_error_of([&] { evaluated({"tasks=" + tasks.string()}); });
  EXPECT_TRUE(contains(error, "data.jsonl:1")) << error;
  EXPECT_TRUE(contains(error, "doc_to_choice gives ['a', Undefined]")) << error;
}

// A field that a template names and a document lacks is an error at the document, as it is in the
// harness (StrictUndefined), and no empty text.
TEST(Tasks, AMissingFieldIsNamedWithItsRecord) {
  const TemporaryFolder folder;
  folder.write("data.jsonl", "{\"q\": \"a\"}\n{\"p\": \"b\"}\n");
  const auto tasks = folder.write(
      "t.yaml",
      "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: data.jsonl}}\n"
      "test_split: test\ndoc_to_text: '{{q}}'\ndoc_to_target: a\noutput_type: loglikelihood\n");
  const std::string error = user_error_of([&] { evaluated({"tasks=" + tasks.string()}); });
  EXPECT_TRUE(contains(error, "data.jsonl:2")) << error;
  EXPECT_TRUE(contains(error, "'q' is undefined")) << error;
}

}  // namespace
}  // namespace snug::testing
