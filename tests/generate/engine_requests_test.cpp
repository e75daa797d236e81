// Requests that come, differ, are taken back and run out of time, on a small model and a clock that
// stands still until it is set.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "../base/captured_stream.h"
#include "base/python_pattern.h"
#include "base/temporary_folder.h"
#include "engine/engine.h"
#include "engine/request_shape.h"
#include "formats/recipe/recipe.h"
#include "golden_recipe.h"
#include "text/grammar/pattern_grammar.h"
#include "text/unicode/utf8.h"

namespace snug::testing {
namespace {

using engine::Answer;
using engine::AnswerEvent;
using engine::Finish;
using engine::Request;
using engine::RequestId;

constexpr int64_t kChunk = 8;

Request request_of(size_t prompt, int64_t new_tokens = 6) {
  return {.prompt = random_ids(prompt, 137, static_cast<unsigned>(100 + prompt)),
          .max_new_tokens = new_tokens};
}

class EngineRequests : public ::testing::Test {
 protected:
  // What a request's listener has heard.
  struct Heard {
    engine::Ids ids;
    std::vector<Finish> finishes;
  };

  RequestId submit(Request request) {
    return engine_.submit(std::move(request), [&](const AnswerEvent& event) { hear(event); });
  }
  void hear(const AnswerEvent& event) {
    Heard& heard = heard_[event.request];
    EXPECT_TRUE(heard.finishes.empty()) << "nothing comes after the end";
    if (event.id) heard.ids.push_back(*event.id);
    if (event.finish) heard.finishes.push_back(*event.finish);
  }
  void run() {
    while (engine_.step()) continue;
  }
  // The ids of an answer that nobody disturbs.
  engine::Ids alone(const Request& request) {
    engine::Engine other(inference_);
    return other.answers({&request, 1}).front().ids;
  }
  void expect_undisturbed(RequestId id, const Request& request) {
    EXPECT_EQ(heard_[id].ids, alone(request)) << id;
    EXPECT_EQ(heard_[id].finishes, std::vector<Finish>{Finish::length}) << id;
  }

  formats::Recipe recipe_ = golden_recipe("grouped_tied");
  engine::Inference inference_{recipe_,
                               runtime::open_model(recipe_),
                               {.sequences = 2, .capacity = 64, .prefill_tokens = kChunk}};
  double now_ = 0;
  engine::Engine engine_{inference_.executor(),
                         inference_.model(),
                         inference_.shape(),
                         {.clock = [&] { return now_; }}};
  std::map<RequestId, Heard> heard_;
};

TEST_F(EngineRequests, RunSideBySideAsTheyDoAlone) {
  std::vector<Request> requests;
  for (const size_t prompt : {3, 20, 1, 9, 30, 8})
    requests.push_back(request_of(prompt, 2 + static_cast<int64_t>(prompt % 5)));
  requests[1].sampling = {.temperature = 1.2, .seed = 5};
  requests[3].sampling = {.temperature = 1.2, .top_k = 20, .seed = 5};
  requests[4].sampling.repetition_penalty = 1.5;
  for (const Request& request : requests) submit(request);
  EXPECT_EQ(engine_.waiting(), 6);
  run();
  for (size_t i = 0; i < requests.size(); ++i)
    expect_undisturbed(static_cast<RequestId>(i), requests[i]);
  EXPECT_EQ(engine_.waiting() + engine_.running(), 0);
}

// One that answers hears a token for each chunk of a long prompt that is read meanwhile.
TEST_F(EngineRequests, ALongPromptDoesNotStopAnAnswer) {
  submit(request_of(4, 10));
  engine_.step();
  submit(request_of(5 * kChunk, 2));
  for (int64_t chunk = 1; chunk <= 4; ++chunk) {
    engine_.step();
    engine_.step();
    EXPECT_EQ(std::ssize(heard_[0].ids), 1 + chunk);
    EXPECT_TRUE(heard_[1].ids.empty());
  }
  run();
  expect_undisturbed(0, request_of(4, 10));
  expect_undisturbed(1, request_of(5 * kChunk, 2));
}

TEST_F(EngineRequests, AreCancelledAtAnyMoment) {
  const Request goes_on = request_of(5, 12);
  const Request cancelled = request_of(3 * kChunk, 8);
  // The number of steps until a waiting one has been read and has answered in full.
  for (int moment = 0; moment < 16; ++moment) {
    const RequestId stays = submit(goes_on);
    const RequestId goes = submit(cancelled);
    const RequestId next = submit(request_of(7, 3));
    for (int step = 0; step < moment; ++step) engine_.step();
    const bool has_ended = !heard_[goes].finishes.empty();
    engine_.cancel(goes);
    engine_.cancel(goes);  // is passed over
    EXPECT_EQ(heard_[goes].finishes,
              std::vector<Finish>{has_ended ? Finish::length : Finish::cancelled});
    run();
    expect_undisturbed(stays, goes_on);
    expect_undisturbed(next, request_of(7, 3));
    const engine::Ids whole = alone(cancelled);
    EXPECT_TRUE(
        std::ranges::equal(heard_[goes].ids, std::span(whole).first(heard_[goes].ids.size())));
  }
  engine_.cancel(12345);  // nobody's
}

// From inside a listener: itself, a neighbour of the same step, one that waits.
TEST_F(EngineRequests, AreCancelledFromInsideAListener) {
  for (const RequestId victim : {0, 1, 2}) {
    heard_.clear();
    engine::Engine engine(inference_);
    bool is_done = false;
    for (const size_t prompt : {3, 5, 6})
      engine.submit(request_of(prompt), [&](const AnswerEvent& event) {
        hear(event);
        if (event.request != 0 || is_done) return;
        is_done = true;
        engine.cancel(victim);
        EXPECT_EQ(heard_[victim].finishes, std::vector<Finish>{Finish::cancelled});
      });
    while (engine.step()) continue;
    for (const RequestId id : {0, 1, 2})
      if (id != victim) expect_undisturbed(id, request_of(id == 0 ? 3 : id == 1 ? 5 : 6));
    EXPECT_EQ(std::ssize(heard_[victim].ids), victim == 0 ? 1 : 0);
  }
}

// A neighbour whose last token is chosen, and who has not heard of it.
TEST_F(EngineRequests, AreCancelledBetweenTheLastTokenAndItsListener) {
  engine_.submit(request_of(3, 1), [&](const AnswerEvent&) { engine_.cancel(1); });
  submit(request_of(5, 1));
  run();
  EXPECT_EQ(heard_[1].finishes, std::vector<Finish>{Finish::cancelled});
  EXPECT_TRUE(heard_[1].ids.empty());
}

TEST_F(EngineRequests, EndAtTheirDeadlines) {
  Request runs = request_of(4, 10);
  runs.deadline = 5;
  Request waits = request_of(4, 10);
  waits.deadline = 3;
  submit(runs);
  submit(request_of(6, 10));
  submit(waits);
  submit(request_of(7, 2));
  engine_.step();
  engine_.step();
  now_ = 3;
  engine_.step();
  EXPECT_EQ(heard_[2].finishes, std::vector<Finish>{Finish::deadline});
  EXPECT_TRUE(heard_[2].ids.empty());
  EXPECT_TRUE(heard_[0].finishes.empty());
  now_ = 5.5;
  engine_.step();
  EXPECT_EQ(heard_[0].finishes, std::vector<Finish>{Finish::deadline});
  EXPECT_EQ(heard_[0].ids.size(), 2U);
  EXPECT_EQ(engine_.running(), 2) << "the next one has its place";
  run();
  expect_undisturbed(1, request_of(6, 10));
  expect_undisturbed(3, request_of(7, 2));
}

TEST_F(EngineRequests, AListenerSubmits) {
  int64_t rounds = 0;
  engine::Listener again = [&](const AnswerEvent& event) {
    hear(event);
    if (event.finish && ++rounds < 4) engine_.submit(request_of(5, 3), again);
  };
  engine_.submit(request_of(5, 3), again);
  run();
  EXPECT_EQ(rounds, 4);
  for (RequestId id = 0; id < 4; ++id) expect_undisturbed(id, request_of(5, 3));
}

// The others hear later what they would have heard.
TEST_F(EngineRequests, AListenerThatThrowsTakesNothingFromOthers) {
  engine_.submit(request_of(3, 1), [](const AnswerEvent&) { throw std::runtime_error("gone"); });
  submit(request_of(5));
  EXPECT_THROW(engine_.step(), std::runtime_error);
  run();
  expect_undisturbed(1, request_of(5));
}

TEST_F(EngineRequests, AListenerMustNotStep) {
  engine_.submit(request_of(3, 1), [&](const AnswerEvent&) { engine_.step(); });
  EXPECT_TRUE(dies([&] { engine_.step(); }, "a listener steps the engine"));
}

TEST_F(EngineRequests, RefuseWhatCanNeverRun) {
  const auto error = [&](const auto& change) {
    Request request = request_of(5);
    change(request);
    return user_error_of([&] { submit(request); });
  };
  EXPECT_TRUE(contains(error([](Request& request) { request.prompt.clear(); }), "empty"));
  EXPECT_TRUE(contains(error([](Request& request) { request.prompt[2] = 137; }),
                       "token 3 of the prompt is 137"));
  EXPECT_TRUE(contains(error([](Request& request) { request.max_new_tokens = 0; }), "one token"));
  EXPECT_TRUE(contains(error([](Request& request) { request.max_new_tokens = 61; }), "64"));
  EXPECT_EQ(error([](Request& request) { request.max_new_tokens = 60; }), "(no error)");
  EXPECT_TRUE(contains(error([](Request& request) { request.end.texts = {"x"}; }), "no tokenizer"));
  EXPECT_TRUE(contains(error([](Request& request) { request.end.texts = {""}; }), "empty"));
  EXPECT_TRUE(contains(error([](Request& request) { request.log_probabilities = -1; }), "-1"));
  const std::vector<Request> second_is_wrong{request_of(5), Request{}};
  EXPECT_TRUE(contains(user_error_of([&] { engine_.answers(second_is_wrong); }), "empty"));
  EXPECT_EQ(engine_.waiting(), 1) << "the one that was right";
}

// Tokens of one letter each, of two from id 40 on; the others are special.
std::shared_ptr<text::TokenGrammar> form_of(const std::string& expression) {
  std::vector<std::string> bytes(137);
  for (size_t i = 0; i < 20; ++i) bytes[i] = std::string(1, static_cast<char>('a' + i));
  for (size_t i = 0; i < 20; ++i) bytes[40 + i] = bytes[i] + bytes[(i + 3) % 20];
  return std::make_shared<text::TokenGrammar>(
      text::regex_grammar(expression), std::make_shared<const text::TokenTrie>(std::move(bytes)));
}

std::string spelled(const std::shared_ptr<text::TokenGrammar>& form, const engine::Ids& ids) {
  std::string bytes;
  for (const int32_t id : ids) bytes += form->tokens().bytes_of(id);
  return bytes;
}

TEST_F(EngineRequests, AnswersFollowTheirForm) {
  constexpr int32_t kEnd = 100;
  std::vector<Request> requests(6, request_of(5, 40));
  const std::string expression = "(ab|[c-f]{3})(gj|h)*q?";
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].form = form_of(expression);
    requests[i].sampling = {.temperature = i == 0 ? 0.0 : 2.0, .top_p = 0.9, .seed = 3};
    requests[i].sample = static_cast<int64_t>(i);
    if (i % 2 == 0) requests[i].end.ids = {kEnd};
  }
  requests.push_back(request_of(5, 2));  // next to one that has none
  const base::PythonPattern oracle(expression, base::PythonPattern::Where::whole);
  const std::vector<Answer> answers = engine_.answers(requests);
  for (size_t i = 0; i + 1 < requests.size(); ++i) {
    engine::Ids ids = answers[i].ids;
    EXPECT_EQ(ids, alone(requests[i]));
    if (answers[i].finish == Finish::length) continue;
    if (ids.back() == kEnd) ids.pop_back();
    EXPECT_TRUE(oracle.matches(spelled(requests[i].form, ids))) << i;
  }
  EXPECT_EQ(answers.back().ids, alone(requests.back()));
}

// Where nothing can follow, no token that ends an answer is needed.
TEST_F(EngineRequests, AnAnswerWhoseFormIsCompleteHasEnded) {
  Request request = request_of(5, 20);
  request.form = form_of("abc|dg");
  const Answer answer = engine_.answers({&request, 1}).front();
  EXPECT_EQ(answer.finish, Finish::stop);
  const std::string text = spelled(request.form, answer.ids);
  EXPECT_TRUE(text == "abc" || text == "dg") << text;
}

// Probabilities are those of the model, whatever may come.
TEST_F(EngineRequests, AFormChangesNoLogProbability) {
  Request request = request_of(5, 1);
  request.log_probabilities = 137;
  std::map<int32_t, double> free;
  engine_.submit(request, [&](const AnswerEvent& event) {
    for (const auto& [id, value] : event.likeliest) free[id] = value;
  });
  run();
  request.form = form_of("[m-p]+");
  const Answer answer = engine_.answers({&request, 1}).front();
  EXPECT_EQ(answer.log_probabilities.front(), free.at(answer.ids.front()));
  EXPECT_EQ(engine::shape_for({&request, 1}, 1, inference_.model()).candidates, 0);
}

// Programs that look for the 20 likeliest serve every request that needs no more.
TEST_F(EngineRequests, ShareProgramsThatLookForTheLikeliest) {
  std::vector<Request> requests{request_of(3), request_of(4), request_of(5)};
  requests[1].sampling = {.temperature = 1.5, .top_k = 20, .seed = 1};
  requests[2].sampling = {.temperature = 1.5, .top_k = 7, .top_p = 0.9, .seed = 1};
  const auto shape = engine::shape_for(requests, 2, inference_.model());
  EXPECT_EQ(shape.candidates, 20);
  engine::Inference by_candidates(recipe_, runtime::open_model(recipe_), shape);
  engine::Engine engine(by_candidates);
  const std::vector<Answer> answers = engine.answers(requests);
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(answers[i].ids, alone(requests[i]));
  Request more = request_of(3);
  more.sampling = {.temperature = 1.5, .top_k = 21};
  EXPECT_TRUE(contains(user_error_of([&] { engine.answers({&more, 1}); }), "the 21 likeliest"));
  more = request_of(3);
  more.log_probabilities = 0;
  EXPECT_TRUE(contains(user_error_of([&] { engine.answers({&more, 1}); }), "asks for all"));
  more = request_of(3);
  more.form = form_of("a");
  EXPECT_TRUE(contains(user_error_of([&] { engine.answers({&more, 1}); }), "asks for all"));
  requests.push_back(more);
  EXPECT_EQ(engine::shape_for(requests, 2, inference_.model()).candidates, 0);
}

TEST_F(EngineRequests, CountWhatRan) {
  const std::vector<Request> requests{request_of(5, 3), request_of(7, 3)};
  engine_.answers(requests);
  const engine::EngineTimes& times = engine_.times();
  EXPECT_EQ(times.prefill_tokens, 12);
  EXPECT_EQ(times.decode_tokens, 4);
  EXPECT_GT(times.decode_runs, 1);
  EXPECT_GT(times.prefill_seconds, 0);
  EXPECT_GT(times.decode_seconds, 0);
}

// What was not told before, in whole characters, and without what ends the answer.
TEST(EngineText, OfEventsIsTheAnswer) {
  const formats::Recipe recipe = recipe_of({"model=examples/wordnet", "init=random"});
  const models::ModelSource model = runtime::open_model(recipe);
  const auto tokenizer = text::Tokenizer::from_folder("examples/wordnet");
  std::vector<Request> requests(3, {.prompt = tokenizer.encode("The oregano is"),
                                    .max_new_tokens = 24,
                                    .sampling = {.temperature = 1.5, .seed = 2}});
  for (size_t i = 0; i < requests.size(); ++i) requests[i].sample = static_cast<int64_t>(i);
  engine::Inference inference(recipe, model, engine::shape_for(requests, 2, model.config));
  engine::Engine engine(inference, &tokenizer);
  const std::vector<Answer> free = engine.answers(requests);
  for (const Answer& answer : free) {
    EXPECT_EQ(answer.text, tokenizer.decode(answer.ids));
    EXPECT_EQ(answer.finish, Finish::length);
    EXPECT_EQ(answer.prompt_tokens, std::ssize(requests[0].prompt));
  }
  EXPECT_NE(free[0].ids, free[1].ids) << "samples differ";
  const std::string stop = free[1].text.substr(free[1].text.size() / 2, 5);
  requests[1].end.texts = {stop};
  engine.submit(requests[1], [&](const AnswerEvent& event) {
    EXPECT_EQ(text::find_invalid_utf8(event.text), std::string::npos);
    EXPECT_FALSE(contains(event.text, stop));
  });
  const std::vector<Answer> stopped = engine.answers(requests);
  EXPECT_EQ(stopped[0].text, free[0].text);
  EXPECT_EQ(stopped[1].text, free[1].text.substr(0, free[1].text.find(stop)));
  EXPECT_EQ(stopped[1].finish, Finish::stop);
  EXPECT_LT(stopped[1].ids.size(), free[1].ids.size());
}

}  // namespace
}  // namespace snug::testing
