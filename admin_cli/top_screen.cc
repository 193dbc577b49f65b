#include "admin_cli/top_screen.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "admin_cli/top.h"
#include "admin_cli/top_layout.h"
#include "admin_cli/top_tables.h"

// Last: it has macros of common names.
#define NCURSES_NOMACROS 1
#include <curses.h>
#include <term.h>

namespace farkv {
namespace {

constexpr int kKeyWaitMs = 100;
constexpr int kEscapeWaitMs = 25;
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile std::sig_atomic_t signal_seen = 0;

void NoteSignal(int signal) { signal_seen = signal; }

void OnSignals(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;  // without SA_RESTART: getch returns
  for (int signal : kSignals) sigaction(signal, &action, nullptr);
}

// The terminal in full-screen mode, for as long as it lives.
class Terminal {
 public:
  Terminal() : screen_(newterm(nullptr, stdout, stdin)) {
    if (screen_ == nullptr) return;
    OnSignals(NoteSignal);  // in place of ncurses' own
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    set_escdelay(kEscapeWaitMs);
    wtimeout(stdscr, kKeyWaitMs);
    curs_set(0);
  }
  ~Terminal() {
    if (screen_ == nullptr) return;
    curs_set(1);
    endwin();
    delscreen(screen_);
    OnSignals(SIG_DFL);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  bool ok() const { return screen_ != nullptr; }

 private:
  SCREEN* const screen_;
};

chtype StyleOf(ScreenLine::Style style) {
  switch (style) {
    case ScreenLine::Style::kSummary:
      return A_BOLD;
    case ScreenLine::Style::kTitles:
      return A_UNDERLINE;
    case ScreenLine::Style::kFocusedTitles:
      return A_REVERSE;
    case ScreenLine::Style::kKeys:
      return A_DIM;
    case ScreenLine::Style::kPlain:
      break;
  }
  return A_NORMAL;
}

// What the two threads share.
class Rounds {
 public:
  Rounds(const CliOptions& options, TopSampler& sampler)
      : options_(options), sampler_(sampler), thread_([this] { Run(); }) {}
  ~Rounds() {
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
    }
    sampler_.Cancel();
    thread_.join();
  }

  // True when `tables` has become newer. `shown` counts rounds.
  bool Take(TopTables& tables, int64_t& shown) {
    absl::MutexLock lock(&mutex_);
    if (rounds_ == shown) return false;
    shown = rounds_;
    tables = tables_;
    return true;
  }

 private:
  void Run() {
    for (;;) {
      const absl::Time start = absl::Now();
      auto samples = sampler_.Sample(RoundDeadline(options_));
      absl::MutexLock lock(&mutex_);
      if (stopped_) return;
      tables_.Add(std::move(samples), start);
      if (++rounds_ == options_.top.count) return;
      mutex_.AwaitWithDeadline(absl::Condition(&stopped_),
                               start + options_.top.interval);
      if (stopped_) return;
    }
  }

  const CliOptions& options_;
  TopSampler& sampler_;
  absl::Mutex mutex_;
  TopTables tables_ ABSL_GUARDED_BY(mutex_);
  int64_t rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

void Draw(const TopTables& tables, int64_t shown, bool wide, TopView& view) {
  const std::string summary = shown == 0 ? "asking ..." : tables.Summary();
  const auto height = static_cast<size_t>(std::max(getmaxy(stdscr), 0));
  const auto width = static_cast<size_t>(std::max(getmaxx(stdscr), 0));
  werase(stdscr);
  int row = 0;
  for (const ScreenLine& line :
       LayOut(summary, tables.Tables(), wide, height, width, view)) {
    wattrset(stdscr, static_cast<int>(StyleOf(line.style)));
    mvwaddnstr(stdscr, row++, 0, line.text.c_str(),
               static_cast<int>(line.text.size()));
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

std::optional<TopKey> KeyOf(int code) {
  switch (code) {
    case '\t':
      return TopKey::kNext;
    case 's':
      return TopKey::kSort;
    case 'r':
      return TopKey::kReverse;
    case 'z':
      return TopKey::kZoom;
    case KEY_UP:
    case 'k':
      return TopKey::kUp;
    case KEY_DOWN:
    case 'j':
      return TopKey::kDown;
    default:
      return std::nullopt;
  }
}

// Until q, the last round or a signal.
int ShowRounds(const CliOptions& options, TopSampler& sampler) {
  TopTables tables;
  TopView view;
  view.sort_by.fill(options.output.sort_by);
  const bool wide = options.output.format == "wide";
  int64_t shown = 0;
  Draw(tables, shown, wide, view);
  Rounds rounds(options, sampler);
  while (signal_seen == 0) {
    const int code = wgetch(stdscr);  // also tells of another size
    if (code == 'q') break;
    bool changed = code != ERR;
    if (const auto key = KeyOf(code)) Press(*key, tables.Tables(), view);
    changed |= rounds.Take(tables, shown);
    if (changed) Draw(tables, shown, wide, view);
    if (shown > 0 && shown == options.top.count) break;
  }
  return tables.ExitCode();
}

}  // namespace

std::string WhyNoScreen() {
  const char* term = std::getenv("TERM");
  if (term == nullptr || *term == '\0') return "TERM is not set";
  int found = 0;
  if (setupterm(term, fileno(stdout), &found) != OK) {
    return absl::StrCat(
        "this machine has no description of the terminal "
        "TERM=",
        term);
  }
  const char* move = tigetstr("cup");
  const bool able = move != nullptr && move != reinterpret_cast<char*>(-1);
  del_curterm(cur_term);
  return able ? ""
              : absl::StrCat("the terminal TERM=", term,
                             " has no way to place the cursor");
}

std::optional<int> ShowTopScreen(const CliOptions& options,
                                 TopSampler& sampler) {
  int code = kExitOk;
  {
    const Terminal terminal;
    if (!terminal.ok()) return std::nullopt;
    code = ShowRounds(options, sampler);
  }
  // As it would have ended the process.
  if (signal_seen != 0) std::raise(signal_seen);
  return code;
}

}  // namespace farkv
