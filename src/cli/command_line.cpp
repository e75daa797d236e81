#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "cli/request.h"
#include "cli/verbs.h"

namespace snug::cli {
namespace {

constexpr const char* kDescription =
    "snug fine-tunes language models in exactly the memory that it planned.\n"
    "Every verb takes an optional recipe file and settings of the form key=value, which override "
    "it. If a key is given twice, the last value counts. Relative paths of inputs in a recipe are "
    "looked up in the current folder, then in the recipe's folder. snug VERB --help lists the "
    "keys.";

struct ParsedVerb {
  const VerbEntry* verb = nullptr;
  CLI::App* command = nullptr;
  std::vector<std::string> words;
  bool json = false;
};

// The first argument must be a verb or an option; CLI11 would not say which verb is near.
void require_verb(std::string_view word) {
  std::vector<std::string_view> names;
  for (const VerbEntry& verb : verbs()) {
    const std::string_view first = verb.name.substr(0, verb.name.find(' '));
    if (word == first) return;
    names.push_back(first);
  }
  const auto nearest = base::nearest_name(word, names);
  base::throw_user_error("'{}' is no verb of snug{} snug --help lists them", word,
                         nearest ? fmt::format("; did you mean '{}'?", *nearest) : ";");
}

// "bench calibrate" becomes the subcommand "calibrate" of the command "bench", which other bench
// verbs share.
CLI::App* add_command(CLI::App& app, const VerbEntry& verb) {
  const size_t space = verb.name.find(' ');
  if (space == std::string_view::npos)
    return app.add_subcommand(std::string(verb.name), std::string(verb.summary));
  const std::string first(verb.name.substr(0, space));
  const auto known = app.get_subcommands([&](CLI::App* sub) { return sub->get_name() == first; });
  CLI::App* group = known.empty() ? nullptr : known.front();
  if (group == nullptr) {
    const std::string what =
        first == "bench" ? "run a measurement" : first + " models in another format";
    group = app.add_subcommand(first, fmt::format("{}; snug {} --help lists them", what, first));
    group->require_subcommand(1);
  }
  return group->add_subcommand(std::string(verb.name.substr(space + 1)), std::string(verb.summary));
}

void add_verb(CLI::App& app, const VerbEntry& verb, std::deque<ParsedVerb>& parsed) {
  ParsedVerb& entry = parsed.emplace_back();
  entry.verb = &verb;
  entry.command = add_command(app, verb);
  entry.command->add_option("words", entry.words,
                            verb.takes_folders
                                ? "folders, and settings of the form key=value"
                                : "a recipe file, and settings of the form key=value");
  entry.command->add_flag("--json", entry.json, "print JSON on standard output");
  entry.command->footer(verb.help);
}

[[noreturn]] void throw_as_user_error(const CLI::ParseError& error) {
  std::string message = error.what();
  if (message.find("--") != std::string::npos)
    message += "; keys of a recipe are written without dashes, as in max_steps=50";
  base::throw_user_error("{}", message);
}

}  // namespace

int run(int argc, const char* const* argv) {
  CLI::App app(kDescription, "snug");
  app.set_version_flag("--version", "snug " SNUG_VERSION);
  app.require_subcommand(1);
  std::deque<ParsedVerb> parsed;  // CLI11 keeps pointers into it
  for (const VerbEntry& verb : verbs()) add_verb(app, verb, parsed);

  if (argc > 1 && argv[1][0] != '-') require_verb(argv[1]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    throw_as_user_error(error);
  }
  for (const ParsedVerb& entry : parsed) {
    if (!entry.command->parsed()) continue;
    Request request = make_request(entry.words, entry.json, entry.verb->takes_folders);
    request.keys = entry.verb->keys;
    require_keys_of(*entry.verb, request);
    require_launch_of(*entry.verb);
    return entry.verb->run(request);
  }
  return 0;
}

}  // namespace snug::cli
