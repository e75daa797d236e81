// What is known of documents before they are learned, on stores made by hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/audit/audit_findings.h"
#include "text/audit/audit_set.h"
#include "tiny_tokenizer.h"

namespace snug::text {
namespace {

using Ids = std::vector<int32_t>;

// Ids are bytes; 256 is <s>, 257 is </s>, 258 <|im_start|>, 259 <|im_end|>.
constexpr int32_t kBos = 256;
constexpr int32_t kEos = 257;
constexpr int32_t kStart = 258;
constexpr int32_t kEnd = 259;

Tokenizer chat_tokenizer() {
  TinyTokenizer tiny;
  tiny.added = {"<s>", "</s>", "<|im_start|>", "<|im_end|>"};
  return tiny.make();
}

// A document in the making: parts that are learned or not, as bytes or as added tokens.
struct Written {
  Ids ids{};
  std::vector<uint8_t> trained{};

  Written& say(const std::string& text, bool is_trained = false) {
    for (const char c : text) add(static_cast<unsigned char>(c), is_trained);
    return *this;
  }
  Written& add(int32_t id, bool is_trained = false) {
    ids.push_back(id);
    trained.push_back(is_trained ? 1 : 0);
    return *this;
  }
};

Written answered(const std::string& prompt, const std::string& answer) {
  return Written().say(prompt).say(answer, true).add(kEos, true);
}

Written chat(const std::string& system, const std::string& user, const std::string& answer) {
  Written written;
  written.add(kStart).say("system\n" + system).add(kEnd).say("\n");
  written.add(kStart).say("user\n" + user).add(kEnd).say("\n");
  return written.add(kStart).say("assistant\n").say(answer, true).add(kEnd, true);
}

DocumentStore store_of(const std::vector<Written>& documents) {
  DocumentStore store;
  for (const Written& document : documents) store.add(document.ids, document.trained);
  store.finish();
  return store;
}

// A set of prompts with answers, as load_dataset would count it.
AuditedSet set_of(const DocumentStore& store, const std::string& form = "prompt_completion") {
  AuditedSet set{.name = "training", .path = "data.jsonl", .ends = {kEos}};
  set.loaded.form = form;
  set.loaded.documents = store.size();
  set.loaded.tokens = store.tokens();
  for (int64_t i = 0; i < store.size(); ++i) {
    set.loaded.count_record(store.length(i));
    set.loaded.trained_tokens += store.targets(i);
  }
  return set;
}

class Audit : public ::testing::Test {
 protected:
  AuditedSet audited(const DocumentStore& store, AuditedSet set,
                     const AuditedSet* training = nullptr) {
    audit_set({.documents = store, .tokenizer = &tokenizer_, .depth = kWholeAudit}, set, training);
    set.findings = find_faults(report_, set, store, &tokenizer_);
    return set;
  }
  AuditedSet audited(const std::vector<Written>& documents,
                     const std::string& form = "prompt_completion") {
    const DocumentStore store = store_of(documents);
    return audited(store, set_of(store, form));
  }
  // The keys of what was found, warnings with a "!".
  static std::string keys(const AuditedSet& set) {
    std::string keys;
    for (const Finding& finding : set.findings)
      keys += std::string(keys.empty() ? "" : " ") + std::string(finding.key) +
              (finding.is_warning ? "!" : "");
    return keys;
  }
  static std::string told(const AuditedSet& set, std::string_view key) {
    for (const Finding& finding : set.findings)
      if (finding.key == key) return finding.what + ". " + finding.remedy;
    return "";
  }

  Tokenizer tokenizer_ = chat_tokenizer();
  AuditReport report_{.model = "tiny", .max_length = 512, .sets = {}};
};

// Records with nothing wrong, all different.
std::vector<Written> sound(int count) {
  const std::vector<std::string> words{"apple", "bridge", "candle", "dolphin", "engine", "forest"};
  std::vector<Written> documents;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i * i * 7919 + 13);
    const std::string& word = words[static_cast<size_t>(i) % words.size()];
    documents.push_back(answered("What is " + number + " of " + word + "? ",
                                 word + " weighs " + number + " grams"));
  }
  return documents;
}

TEST_F(Audit, FindsNothingInSoundData) {
  const AuditedSet set = audited(sound(40));
  EXPECT_EQ(keys(set), "");
  EXPECT_EQ(set.scan.documents, 40);
  EXPECT_EQ(set.scan.with_end, 40);
  EXPECT_EQ(set.scan.contents.repeated(), 0);
  EXPECT_EQ(set.near->near, 0);
  EXPECT_EQ(set.scan.answers.size(), 40);
}

TEST_F(Audit, PiecesAreTheTextInTokensThatAreTrainedOrNot) {
  // The accented letter's two bytes lie on both sides of the bound.
  const std::string accented = "\xC3\xA9";
  Written written;
  written.add(kBos).say("caf" + accented.substr(0, 1)).say(accented.substr(1) + "!", true);
  written.add(kEos, true).say(" x");
  const DocumentStore store = store_of({written});
  const DocumentSample sample = sample_of(store, 0, &tokenizer_);
  ASSERT_EQ(sample.pieces.size(), 5U);
  const std::vector<std::string> texts{"<s>", "caf", accented + "!", "</s>", " x"};
  const std::vector<std::pair<int32_t, int32_t>> bounds{{0, 1}, {1, 5}, {5, 7}, {7, 8}, {8, 10}};
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(sample.pieces[i].text, texts[i]) << i;
    EXPECT_EQ(sample.pieces[i].begin, bounds[i].first) << i;
    EXPECT_EQ(sample.pieces[i].end, bounds[i].second) << i;
    EXPECT_EQ(sample.pieces[i].is_trained, i == 2 || i == 3) << i;
    EXPECT_EQ(sample.pieces[i].is_added, i == 0 || i == 3) << i;
  }
  EXPECT_EQ(sample.trained, 3);
  EXPECT_EQ(sample.ids, written.ids);
  EXPECT_EQ(sample_of(store, 0, nullptr).pieces[0].text, "256 99 97 102 195");
}

TEST_F(Audit, ShowsTheFirstTheLongestAndTheShortest) {
  std::vector<Written> documents = sound(30);
  documents[11] = answered("Tell all. ", std::string(200, 'z'));
  documents[17] = answered("? ", "no");
  const AuditedSet set = audited(documents);
  std::string shown;
  for (const DocumentSample& sample : set.samples)
    if (sample.why != "by chance") shown += std::to_string(sample.document) + sample.why + ";";
  EXPECT_EQ(shown, "0the first;11the longest;17the shortest;");
  EXPECT_GE(set.samples.size(), 4U);
  EXPECT_EQ(audited(documents).samples[1].document, set.samples[1].document);
}

TEST_F(Audit, CountsEqualRecords) {
  std::vector<Written> documents = sound(38);
  for (const int copy : {3, 3, 5}) documents.push_back(documents[static_cast<size_t>(copy)]);
  // The same ids, of which others are learned, are another document.
  documents.push_back(documents[7]);
  documents.back().trained[0] = documents.back().trained[1] = 1;
  const AuditedSet set = audited(documents);
  EXPECT_EQ(set.scan.contents.repeated(), 3);
  EXPECT_EQ(set.scan.contents.most_equal(), 3);
  EXPECT_EQ(keys(set), "repeated!");
  EXPECT_NE(told(set, "repeated").find("3 of 42 records (7.14 %)"), std::string::npos);
}

TEST_F(Audit, PairsAreEqualWhereBothAnswersAre) {
  std::vector<Written> documents = sound(4);
  documents.push_back(documents[0]);  // the same chosen answer, another rejected one
  documents.push_back(documents[2]);
  documents.push_back(documents[0]);
  documents.push_back(documents[1]);
  const DocumentStore store = store_of(documents);
  AuditedSet set = set_of(store, "preference");
  set.group = 2;
  set = audited(store, std::move(set));
  EXPECT_EQ(set.scan.units, 4);
  EXPECT_EQ(set.scan.contents.repeated(), 1);
  EXPECT_EQ(member_name(set, {.document = 2}), "chosen");
  EXPECT_EQ(member_name(set, {.document = 3}), "rejected");
}

TEST_F(Audit, NearDuplicatesShareMostOfWhatIsTheirOwn) {
  // A long system message that all have makes no two of them alike.
  const std::string system(300, 's');
  std::vector<Written> documents;
  for (int i = 0; i < 30; ++i) {
    const std::string number = std::to_string(i * i * 104729 + 17);
    documents.push_back(chat(system, number + " and " + number + number, "is " + number));
  }
  EXPECT_EQ(audited(documents, "messages").near->near, 0);
  std::string story;
  for (int i = 0; i < 60; ++i) story += "w" + std::to_string(i * 31 % 97) + " ";
  documents.push_back(chat(system, story, "one"));
  documents.push_back(chat(system, story + ".", "one"));
  documents.push_back(chat(system, "b" + story, "one"));
  const AuditedSet set = audited(documents, "messages");
  EXPECT_EQ(set.near->near, 2);
  EXPECT_EQ(set.near->one, 30);
  EXPECT_GE(set.near->other, 31);
}

TEST_F(Audit, EvaluationIsComparedWithTraining) {
  const std::vector<Written> documents = sound(30);
  const DocumentStore training = store_of(documents);
  const AuditedSet trained = audited(training, set_of(training));
  std::vector<Written> others = sound(40);
  others.erase(others.begin(), others.begin() + 25);  // five are in the training data
  others.push_back(answered("What is 13 of apple? ", "another answer, which is longer"));
  const DocumentStore evaluation = store_of(others);
  const AuditedSet set = audited(evaluation, set_of(evaluation), &trained);
  EXPECT_EQ(set.overlap->units, 16);
  EXPECT_EQ(set.overlap->equal, 5);
  EXPECT_EQ(set.overlap->equal_prompts, 6);
  EXPECT_EQ(keys(set), "in_training_too! prompts_in_training_too");
}

TEST_F(Audit, AnEndThatIsNeverTrainedIsTold) {
  std::vector<Written> documents = sound(30);
  for (Written& document : documents) document.trained.back() = 0;
  EXPECT_EQ(keys(audited(documents)), "end_never_trained!");
  const AuditedSet tokens = audited(documents, "tokens");
  EXPECT_NE(told(tokens, "end_never_trained").find("put the id 257 at the end"), std::string::npos)
      << told(tokens, "end_never_trained");
  // What the template ends its answers with is an end, whatever the tokenizer says.
  std::vector<Written> chats;
  for (int i = 0; i < 30; ++i)
    chats.push_back(chat("Be kind.", std::to_string(i * 7 + i * i), std::to_string(i * i * i)));
  const DocumentStore store = store_of(chats);
  AuditedSet set = set_of(store, "messages");
  EXPECT_EQ(keys(audited(store, set)), "end_never_trained!");
  Document document;
  document.ids = chats[0].ids;
  document.trained = chats[0].trained;
  set.loaded.ends.add(document, tokenizer_);
  EXPECT_EQ(keys(audited(store, set)), "");
}

TEST_F(Audit, TwoBeginningsAreTold) {
  std::vector<Written> documents = sound(30);
  for (Written& document : documents) {
    document.ids.insert(document.ids.begin(), 2, kBos);
    document.trained.insert(document.trained.begin(), 2, 0);
  }
  const AuditedSet set = audited(documents);
  EXPECT_EQ(keys(set), "two_bos!");
  EXPECT_NE(told(set, "two_bos").find("30 documents (100 %) begin with <s> twice"),
            std::string::npos);
}

TEST_F(Audit, WhatIsHardlyTrainedIsTold) {
  std::vector<Written> documents = sound(30);
  documents[4] = Written().say("no target at all");
  EXPECT_EQ(keys(audited(documents)), "nothing_trained!");
  for (Written& document : documents) {
    const std::string story(1000, 'p');
    document = Written().say(story + std::to_string(&document - documents.data())).add(kEos, true);
  }
  EXPECT_NE(keys(audited(documents)).find("little_trained!"), std::string::npos);
}

TEST_F(Audit, AnswersThatAreAlikeAreTold) {
  std::vector<Written> documents = sound(30);
  for (size_t i = 0; i < 18; ++i)
    documents[i] = answered("Number " + std::to_string(i) + "? ", "none");
  const AuditedSet set = audited(documents);
  EXPECT_EQ(keys(set), "answers_are_alike!");
  EXPECT_NE(told(set, "answers_are_alike").find("one answer is 60 % of all: \"none</s>\""),
            std::string::npos)
      << told(set, "answers_are_alike");
  documents = sound(30);
  for (size_t i = 0; i < documents.size(); ++i)
    documents[i] = answered("Number " + std::to_string(i * i) + "? ",
                            "Sure, here is " + std::to_string(i * i * 77));
  EXPECT_EQ(keys(audited(documents)), "answers_begin_alike");
}

TEST_F(Audit, LengthsThatDoNotFitAreTold) {
  const DocumentStore store = store_of(sound(30));
  AuditedSet set = set_of(store);
  set.loaded.truncated = 3;
  set.loaded.cut_tokens = 100;
  EXPECT_EQ(keys(audited(store, set)), "cut!");
  set.loaded.truncated = 1;
  EXPECT_EQ(keys(audited(store, set)), "cut");
  const std::string all = "max_length=" + std::to_string(set.loaded.longest) + " holds all records";
  EXPECT_NE(told(audited(store, set), "cut").find(all), std::string::npos);
  set = set_of(store);
  for (int i = 0; i < 300; ++i) set.loaded.count_record(60);
  set.loaded.count_record(5000);
  EXPECT_EQ(keys(audited(store, set)), "");
  report_.chooses_length = true;
  const AuditedSet open = audited(store, set);
  EXPECT_EQ(keys(open), "one_long_record!");
  EXPECT_NE(told(open, "one_long_record").find("cuts 1 record"), std::string::npos);
  set = set_of(store);
  set.rows = {.rows = 40, .tokens = 512, .filled = store.tokens(), .is_packed = false};
  EXPECT_EQ(keys(audited(store, set)), "rows_are_loose");
}

TEST_F(Audit, TemplatesThatDoNotBelongToTheTokenizerAreTold) {
  const auto documents_with = [](const std::string& end) {
    std::vector<Written> documents;
    for (int i = 0; i < 30; ++i)
      documents.push_back(answered("<|user|>\n" + std::to_string(i * i * 31) + "<|assistant|>\n",
                                   std::to_string(i * i * 17 + 1234 * i) + " is it" + end));
    return documents;
  };
  EXPECT_EQ(keys(audited(documents_with(""), "messages")), "mark_is_no_token");
  std::vector<Written> documents = documents_with("<end_of_turn>");
  for (Written& document : documents) {
    document.ids.pop_back();
    document.trained.pop_back();
  }
  const AuditedSet set = audited(documents, "messages");
  EXPECT_NE(told(set, "mark_is_no_token").find("answers end with <end_of_turn>"), std::string::npos)
      << keys(set);
}

// The sign of a text, its count, and whether that is told.
TEST_F(Audit, SignsInTheTextAreTold) {
  struct Case {
    const char* key;
    Written (*document)(const std::string&);
  };
  const std::vector<Case> cases{
      {"mojibake!",
       [](const std::string& n) { return answered(n + "? ", "caf\u00C3\u00A9 " + n); }},
      {"mojibake!",
       [](const std::string& n) { return answered(n + "? ", "don\u00E2\u20AC\u2122t " + n); }},
      {"replacement_characters!",
       [](const std::string& n) { return answered(n + "\uFFFD? ", "it is " + n); }},
      {"html_escapes", [](const std::string& n) { return answered(n + "? ", "a &amp; b " + n); }},
      {"escaped_line_breaks",
       [](const std::string& n) { return answered(n + "? ", "one\\ntwo\\n" + n); }},
      {"placeholders",
       [](const std::string& n) { return answered(n + "? ", "I am {{name}} " + n); }},
      {"glued_answers!",
       [](const std::string& n) { return answered("Is it " + n + "?", "yes " + n); }},
      {"empty_system", [](const std::string& n) { return chat("", "is " + n, "yes " + n); }},
      {"template_applied_twice!",
       [](const std::string& n) {
         return chat("Be kind.", "", "yes " + n)
             .add(kStart)
             .say("user\n")
             .add(kStart)
             .say("user\n");
       }},
      {"prompts_are_learned!", [](const std::string& n) {
         Written written = answered("", "### Human: is it " + n + "?\n### Assistant: yes " + n);
         return written;
       }}};
  for (const Case& each : cases) {
    std::vector<Written> documents;
    for (int i = 0; i < 12; ++i) documents.push_back(each.document(std::to_string(i * i * 313)));
    const DocumentStore store = store_of(documents);
    AuditedSet set =
        set_of(store, std::string(each.key) == "prompts_are_learned!" ? "text" : "tokens");
    Document document;
    document.ids = documents[0].ids;
    document.trained = documents[0].trained;
    set.loaded.ends.add(document, tokenizer_);
    EXPECT_EQ(keys(audited(store, set)), each.key);
  }
}

// What people do write, in French, Portuguese, code and dialogs.
TEST_F(Audit, WhatLooksLikeASignIsNone) {
  for (const char* text :
       {"\u00C9\u00BB dit-il, l\u00E0\u2026\u00BB", "N\u00C3O! \u00E9 bom",
        "\u041F\u0440\u0438\u0432\u0435\u0442", "print('a\\nb\\n')\nx", "a && b < c",
        "20 \u00B0C, 3 \u20AC", "\u3053\u3093\u306B\u3061\u306F"}) {
    const std::vector<DecodedPiece> pieces{
        {.text = text, .begin = 0, .end = 9, .is_trained = true}};
    EXPECT_TRUE(find_signs(pieces).empty()) << text;
  }
}

TEST(LengthCounts, HoldWhatTheyPromise) {
  LengthCounts counts;
  for (int64_t length = 1; length <= 1000; ++length) counts.add(length);
  EXPECT_EQ(counts.holding(0.2), 200);
  EXPECT_EQ(counts.holding(1), 1000);
  EXPECT_GE(counts.holding(0.9), 900);
  EXPECT_LE(counts.holding(0.9), 909);
  EXPECT_EQ(counts.longer_than(100), 900);
  EXPECT_EQ(counts.longer_than(1000), 0);
  EXPECT_NEAR(counts.mean(), 500.5, 1e-9);
  LengthCounts longer;
  longer.add(int64_t{1} << 40);
  counts.add_all(longer);
  EXPECT_EQ(counts.longest(), int64_t{1} << 40);
  EXPECT_EQ(counts.longer_than(counts.holding(0.99)), 10);
  const auto bins = counts.bins(10);
  EXPECT_LE(bins.size(), 10U);
  int64_t count = 0;
  for (size_t i = 0; i < bins.size(); ++i) {
    count += bins[i].count;
    if (i > 0) {
      EXPECT_EQ(bins[i].first, bins[i - 1].last + 1);
    }
  }
  EXPECT_EQ(count, 1001);
  EXPECT_EQ(bins.back().last, int64_t{1} << 40);
  EXPECT_TRUE(LengthCounts().bins(10).empty());
}

TEST(FrequentValues, CountTheMostOfMany) {
  FrequentValues values;
  for (uint64_t i = 0; i < 10000; ++i)
    values.add(i % 2 == 0 ? 7 : i * 1000, static_cast<int64_t>(i));
  EXPECT_EQ(values.most().value, 7U);
  EXPECT_LE(values.most().count, 5000);
  EXPECT_GE(values.most().count, 5000 - 10000 / 64);
}

// Of more contents than are kept a part is, by their fingerprint: copies stay together.
TEST(Fingerprints, APartOfThemTellsOfAll) {
  Fingerprints prints(8 * kMostFingerprints);
  EXPECT_TRUE(prints.is_part());
  for (uint64_t i = 0; i < 4096; ++i) prints.add(i / 2);
  prints.finish();
  EXPECT_EQ(prints.repeated(), 2048);
  EXPECT_FALSE(Fingerprints(1000).is_part());
}

}  // namespace
}  // namespace snug::text
