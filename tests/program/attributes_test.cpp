#include "program/ir/attributes.h"

#include "../base/captured_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/words.h"
#include "program/kinds/dispatch.h"
#include "program/text/text_attributes.h"

namespace snug::program {
namespace {

// Operations are copied by the thousand: attributes are no larger than the largest struct and its
// kind.
static_assert(sizeof(Attributes) == Attributes::kCapacity + Attributes::kAlignment);
constexpr size_t kLargestStruct = std::max({
#define SNUG_KIND(Struct, name) sizeof(Struct),
    SNUG_KINDS(SNUG_KIND)
#undef SNUG_KIND
});
static_assert(kLargestStruct == Attributes::kCapacity);
static_assert(!std::is_convertible_v<int, Attributes>);
static_assert(!std::is_convertible_v<std::string, Attributes>);

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const auto& word : base::kWordsOf<Kind>) all.push_back(word.value);
  return all;
}

void set_other(bool& value) { value = !value; }
void set_other(float& value) { value = value == 0.375F ? 0.25F : 0.375F; }
template <typename Value>
void set_other(Value& value) {
  if constexpr (std::is_enum_v<Value>)
    value = base::kWordsOf<Value>.front().value == value ? base::kWordsOf<Value>.back().value
                                                         : base::kWordsOf<Value>.front().value;
  else
    value = std::numeric_limits<Value>::max() - value;
}

// Calls f(value) for each field of attributes of any kind, of a decision for each of its parts.
template <typename Of, typename F>
void for_each_member(Of& attributes, const F& f) {
  dispatch<void>(attributes, [&]<typename Struct>(Struct& values) {
    using Listing = std::remove_const_t<Struct>;
    const auto look = [&]<typename Listed>(const Listed& listed) {
      if constexpr (!Listed::kIsDecision) f(values.*listed.member);
    };
    std::apply([&](const auto&... listed) { (look(listed), ...); }, Listing::kFields);
    for_each_part<Listing>([&](const auto& part) { f(part.of(values)); });
  });
}

// All fields differ from their defaults.
Attributes changed(Kind kind) {
  Attributes attributes = default_attributes(kind);
  for_each_member(attributes, [](auto& member) { set_other(member); });
  return attributes;
}

size_t fields_of(Kind kind) {
  size_t count = 0;
  const Attributes attributes = default_attributes(kind);
  for_each_member(attributes, [&](const auto& /*member*/) { ++count; });
  return count;
}

// What a target fills in is few fields, and each part of one has a name of its own among its
// kind's.
TEST(Attributes, ListFewDecisions) {
  size_t decisions = 0;
  for (const Kind kind : kinds())
    dispatch<void>(default_attributes(kind), [&]<typename Struct>(const Struct&) {
      std::apply([&](const auto&... listed) { ((decisions += listed.kIsDecision ? 1 : 0), ...); },
                 Struct::kFields);
      std::set<std::string_view> names;
      for_each_part<Struct>([&](const auto& part) {
        EXPECT_TRUE(names.insert(part.name).second) << name_of(kind) << ": " << part.name;
      });
    });
  EXPECT_LE(decisions, 20U);
}

TEST(Attributes, AreOfNoKindAtFirst) {
  const Attributes none;
  EXPECT_EQ(none.kind(), kNoKind);
  EXPECT_FALSE(none.is<Matmul>());
  EXPECT_EQ(none.get_if<Matmul>(), nullptr);
  EXPECT_EQ(none, Attributes());
  for (const Kind kind : kinds()) EXPECT_NE(none, default_attributes(kind)) << name_of(kind);
}

TEST(Attributes, HoldTheStructThatTheyAreMadeOf) {
  Attributes attributes = Rope{.head_dim = 128, .interleaved = true};
  EXPECT_EQ(attributes.kind(), Kind::rope);
  EXPECT_TRUE(attributes.is<Rope>());
  EXPECT_EQ(attributes.get<Rope>(), (Rope{.head_dim = 128, .interleaved = true}));
  attributes.get<Rope>().inverse = true;
  attributes.get_if<Rope>()->rotary_dim = 64;
  const Attributes& constant = attributes;
  EXPECT_EQ(*constant.get_if<Rope>(),
            (Rope{.head_dim = 128, .inverse = true, .rotary_dim = 64, .interleaved = true}));
  attributes = AttentionGrad{};
  EXPECT_TRUE(attributes.is<AttentionGrad>());
  EXPECT_EQ(attributes.get<AttentionGrad>(), AttentionGrad{});
}

TEST(Attributes, DoNotGiveTheStructOfAnotherKind) {
  Attributes attributes = Softcap{.cap = 30};
  EXPECT_FALSE(attributes.is<SoftcapGrad>());
  EXPECT_EQ(attributes.get_if<SoftcapGrad>(), nullptr);
  EXPECT_EQ(std::as_const(attributes).get_if<SoftcapGrad>(), nullptr);
}

TEST(Attributes, EndTheProcessWhenAskedForAnotherKind) {
  Attributes attributes = Softcap{.cap = 30};
  EXPECT_TRUE(testing::dies([&] { (void)attributes.get<Rope>(); },
                            "attributes of softcap were asked for those of rope"));
  EXPECT_TRUE(testing::dies([&] { (void)std::as_const(attributes).get<Rope>(); },
                            "attributes of softcap were asked for those of rope"));
  EXPECT_TRUE(testing::dies([&] { (void)Attributes().get<Rope>(); },
                            "attributes of no kind were asked for those of rope"));
}

TEST(Attributes, OfEveryKindAreEqualWhereAllFieldsAre) {
  for (const Kind kind : kinds()) {
    const Attributes defaults = default_attributes(kind);
    EXPECT_EQ(defaults.kind(), kind);
    EXPECT_EQ(defaults, default_attributes(kind));
    EXPECT_EQ(defaults == changed(kind), fields_of(kind) == 0) << name_of(kind);
    // One field after the other.
    for (size_t i = 0; i < fields_of(kind); ++i) {
      Attributes other = defaults;
      size_t at = 0;
      for_each_member(other, [&](auto& member) {
        if (at++ == i) set_other(member);
      });
      EXPECT_NE(other, defaults) << name_of(kind) << ", field " << i;
      EXPECT_NE(defaults, other) << name_of(kind) << ", field " << i;
    }
  }
  EXPECT_EQ(Attributes(Scale{.factor = 0.0F}), Attributes(Scale{.factor = -0.0F}));
  EXPECT_NE(Attributes(Scale{}), Attributes(Softcap{}));
  EXPECT_NE(Attributes(SiluMul{}), Attributes(GeluMul{}));
}

TEST(Attributes, OfEveryKindAreCopiedWithAllFields) {
  for (const Kind kind : kinds()) {
    const Attributes made = changed(kind);
    Attributes copy = made;
    EXPECT_EQ(copy, made) << name_of(kind);
    Attributes assigned = AttentionGrad{.softcap = 2.0F};
    assigned = copy;
    EXPECT_EQ(assigned, made) << name_of(kind);
    const Attributes& self = assigned;
    assigned = self;
    EXPECT_EQ(assigned, made) << name_of(kind);
    // The copy is apart from what it was made of.
    for_each_member(copy, [](auto& member) { set_other(member); });
    EXPECT_EQ(assigned, made) << name_of(kind);
    std::vector<Attributes> list(3, made);
    list.insert(list.begin(), default_attributes(kind));
    std::swap(list[0], list[3]);
    EXPECT_EQ(list[0], made) << name_of(kind);
    EXPECT_EQ(list[3], default_attributes(kind)) << name_of(kind);
    const Attributes moved = std::move(list[0]);
    EXPECT_EQ(moved, made) << name_of(kind);
  }
}

TEST(Attributes, OfEveryKindReadBackFromTheirText) {
  const std::string file = "attributes";
  for (const Kind kind : kinds()) {
    EXPECT_EQ(attributes_text(default_attributes(kind)), "") << name_of(kind);
    const Attributes written = changed(kind);
    const SourceLine line{attributes_text(written) + "}", 1, {{0, 1, false}}};
    EXPECT_EQ(line.text == "}", fields_of(kind) == 0) << name_of(kind);
    LineCursor cursor(line, file);
    Attributes read = default_attributes(kind);
    parse_attributes(cursor, read);
    EXPECT_EQ(read, written) << name_of(kind) << " {" << line.text;
  }
}

}  // namespace
}  // namespace snug::program
