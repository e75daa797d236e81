// Self-contained HTML pages: they need no network and no script. They are readable on a phone and
// on a wide screen, in light and dark.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace snug::report {

// The text, escaped for use in HTML and in attributes.
std::string escaped(std::string_view text);

struct Figure {
  std::string name;
  std::string value;
};

struct MarkedText {
  std::string text;
  bool is_marked = false;
  bool is_faint = false;
};

// Builds a page from top to bottom.
class Page {
 public:
  explicit Page(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // A row of figures, each large under its name.
  void figures(const std::vector<Figure>& figures);
  // The first row is the header. All columns except the first are aligned as numbers.
  void table(const std::vector<std::vector<std::string>>& rows);
  // A text as it stands, in which some parts are marked and some are faint.
  void marked_text(const std::vector<MarkedText>& parts);
  // Adds HTML that charts.h made.
  void chart(std::string_view html);

  // What another page has below its title.
  void append(const Page& page);
  // A browser that shows the page loads it again after so many seconds: for what is not complete.
  void reload_after(int seconds) { reload_seconds_ = seconds; }

  // The whole document.
  std::string text() const;

 private:
  std::string title_;
  std::string body_;
  int reload_seconds_ = 0;  // 0: it stays
};

}  // namespace snug::report
