// HTML pages that need nothing but themselves: no network, no script. They read well on a phone and
// on a wide screen, in light and dark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::report {

// Text as it may stand in HTML and in attributes.
std::string escaped(std::string_view text);

struct Figure {
  std::string name;
  std::string value;
};

// Builds a page from top to bottom.
class Page {
 public:
  explicit Page(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // A row of figures, each large under its name.
  void figures(const std::vector<Figure>& figures);
  // The first row is the head. Columns but the first are aligned as numbers.
  void table(const std::vector<std::vector<std::string>>& rows);
  // HTML as charts.h makes it.
  void chart(std::string_view html);

  // The whole document.
  std::string text() const;

 private:
  std::string title_;
  std::string body_;
};

}  // namespace snug::report
