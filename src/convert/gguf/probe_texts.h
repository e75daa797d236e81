// Short texts that tell tokenizers apart: contractions, runs of digits, line ends, white space,
// several scripts and marks. Two tokenizers that encode all of them alike, very likely are alike.
#pragma once

#include <array>
#include <string_view>

namespace snug::convert {

// Text as most people write it, which must become the same tokens.
inline constexpr auto kOrdinaryTexts = std::to_array<std::string_view>({
    "The quick brown fox jumps over the lazy dog.",
    "I'm sure they'll say it's fine, but we've NOT heard; \"Don't!\" she'd cried.",
    "In 2024, 1234567 people paid $19.99 (or 5%) for 3.14 km of cable: 00700-1.",
    "def add(a, b):\n    # adds two numbers\n    return a + b\n\n\nprint(add(1, 22))\n",
    "{\"key\": [1, 2, 3], \"other_key\": null}\n",
    "Line one\nLine two\n\nA new paragraph: a-b, c_d, e/f, g@h.org",
});

// What is less usual, or not English.
inline constexpr auto kProbeTexts = std::to_array<std::string_view>({
    "I'M SURE THEY'LL SAY IT'S 'TIS we'Ve x'y ''' '' 'a",
    "  two spaces   three    four\tand a tab\t\ttwo \n mixed \r\n ends \n\n ",
    "camelCase HTTPServer aB AbC ABc xY1z2 snake_case__x kebab--case",
    "1 12 123 1234 12345 1.5e-10 ½ ² Ⅷ ٣٤٥ १२३४ a1b22c333",
    "!!! ... ?!?! --- === ### a!b  !c ()[]{}<> /path/to//file.txt\\n, \"q\" `c` ~^|",
    "ends in punctuation.\nand more,\r\n\r\n  ;\n/\n",
    "Größe naïve café cafe\u0301 Žluťoučký kůň ÇĞİŞ ﬁne ﬂow",
    "Съешь же ещё этих мягких булок, Ελληνικά κείμενα ΆΈ",
    "我在北京工作了5年。你好，世界！ ひらがなとカタカナ 漢字 한국어 문장입니다.",
    "हिन्दी में लिखा हुआ वाक्य, বাংলা ভাষা, ภาษาไทยไม่มีวรรค, தமிழ்",
    "مرحبا بالعالم، كيف الحال؟ שָׁלוֹם עולם",
    "🙂👩‍👩‍👧‍👦 🇩🇪 ✅ a🙂b €5 ©™ ← → ∑x²",
    " leading space",
    "trailing space ",
    "\n",
    "a",
});

}  // namespace snug::convert
