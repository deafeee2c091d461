// SPDX-License-Identifier: GPL-2.0-only
#include <atomic>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "output.h"
#include "pageout/tally.h"
#include "source.h"

namespace tally = pageout::tally;

namespace {

constexpr const char* footer = R"(
Examples:
  blktally sda                     the capture in sda.blktrace.0, sda.blktrace.1, ...
  blktally --format json sda       the same for programs; docs/blktally.md has the schema
  blktally --format blkparse sda   what `blkparse -f '' -i sda` prints, to the byte
  blktally --format csv --interval 0.1 sda > sda.csv
  blktrace -d /dev/sda -o - -w 10 | blktally -
  blktally --check --strict *.blktrace.0.zst

TRACE is a basename of NAME.blktrace.N (all CPUs' files are read), one file, or - for standard input;
plain, gzip or zstd, of either byte order.

Exit status:
  0  everything was read
  1  an input could not be opened or is no capture, or the output could not be written
  2  the command line is wrong
  3  a capture is damaged: the totals are of what could be read; with --strict also after any note
)";

// The temporary file, for the signal handler.
char unfinished[4096];

void remove_and_die(int signal)
{
    if (unfinished[0])
        ::unlink(unfinished);
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

// Standard output, or a file that appears under its name only when it is whole.
class Output {
public:
    explicit Output(std::string path) : path_(std::move(path)), target_(path_) {}
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;
    ~Output()
    {
        if (file_ && file_ != stdout)
            std::fclose(file_);
        if (!temporary_.empty())
            ::unlink(temporary_.c_str());
        unfinished[0] = 0;
    }

    bool open()
    {
        if (path_.empty()) {
            file_ = stdout;
            return true;
        }
        // A pipe or a device is written to; only a file can appear when it is whole. It appears where a link leads to.
        struct stat st;
        if (::stat(path_.c_str(), &st) == 0) {
            if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
                file_ = std::fopen(path_.c_str(), "we");
                return file_ != nullptr;
            }
            std::error_code ec;
            if (const auto real = std::filesystem::canonical(path_, ec); !ec)
                target_ = real.string();
        }
        temporary_ = target_ + ".XXXXXX";
        const int fd = ::mkstemp(temporary_.data());
        if (fd < 0) {
            temporary_.clear();
            return false;
        }
        if (temporary_.size() < sizeof unfinished) {
            std::memcpy(unfinished, temporary_.c_str(), temporary_.size() + 1);
            for (const int signal : {SIGINT, SIGTERM, SIGHUP})
                std::signal(signal, remove_and_die);
        }
        const mode_t mask = ::umask(0);
        ::umask(mask);
        (void)::fchmod(fd, 0666 & ~mask);
        file_ = ::fdopen(fd, "w");
        return file_ != nullptr;
    }

    void write(const std::string& text)
    {
        if (!failed_ && std::fwrite(text.data(), 1, text.size(), file_) != text.size())
            fail();
    }

    bool close()
    {
        if (!failed_ && std::fflush(file_) != 0)
            fail();
        if (file_ == stdout) {
            // close() is where some file systems tell that there was no room.
            if (!failed_ && std::fclose(stdout) != 0)
                fail();
            file_ = nullptr;
            return !failed_;
        }
        if (std::fclose(file_) != 0 && !failed_)
            fail();
        file_ = nullptr;
        if (!failed_ && !temporary_.empty() && std::rename(temporary_.c_str(), target_.c_str()) != 0)
            fail();
        if (!failed_) {
            unfinished[0] = 0;
            temporary_.clear();
        }
        return !failed_;
    }

    int error() const { return error_; }
    std::string name() const { return path_.empty() ? "standard output" : path_; }

private:
    void fail()
    {
        failed_ = true;
        error_ = errno;
    }

    std::string path_;
    std::string target_;  // the file that it names
    std::string temporary_;
    FILE* file_ = nullptr;
    bool failed_ = false;
    int error_ = 0;
};

// Tells on a terminal, from the third second on, how far the reading is.
class Progress {
public:
    Progress()
    {
        if (!::isatty(STDERR_FILENO))
            return;
        thread_ = std::thread([this] {
            const auto start = std::chrono::steady_clock::now();
            std::unique_lock lock(mutex_);
            for (int tick = 2; !wake_.wait_until(lock, start + std::chrono::seconds(tick), [this] { return done_; }); ++tick) {
                fmt::print(stderr, "\rblktally: {:.0f} MB read in {} s", static_cast<double>(bytes_.load()) / 1e6, tick);
                told_ = true;
            }
            if (told_)
                fmt::print(stderr, "\r\033[K");
        });
    }
    ~Progress()
    {
        if (!thread_.joinable())
            return;
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }
    void set(std::uint64_t bytes) { bytes_.store(bytes, std::memory_order_relaxed); }

private:
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool done_ = false;
    bool told_ = false;
    std::atomic<std::uint64_t> bytes_{0};
};

// Each CPU's file needs a descriptor.
void allow_many_files()
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)::setrlimit(RLIMIT_NOFILE, &limit);
    }
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Reads blktrace captures and accounts for every request in them."};
    app.set_version_flag("--version", std::string("blktally ") + PAGEOUT_VERSION);
    app.footer(footer);

    std::vector<std::string> traces;
    std::string format = "text", output, grouping = "auto";
    bool strict = false, check = false, per_cpu = false, per_process = false, per_partition = false, histograms = false, no_latency = false, unordered = false;
    double interval_s = 0;
    double window_mib = 24;
    std::uint64_t dropped = 0;
    app.add_option("TRACE", traces, "basename, file or -")->required();
    app.add_option("--format", format, "text, blkparse, json or csv")
        ->check(CLI::IsMember({"text", "blkparse", "json", "csv"}))->capture_default_str();
    app.add_flag("--check", check, "print the damage and order report alone");
    app.add_flag("--strict", strict, "a note is a failure, too (exit status 3)");
    auto* interval = app.add_option("--interval", interval_s, "seconds of a row of the CSV (default: 1)")->check(CLI::PositiveNumber);
    app.add_flag("--per-cpu", per_cpu, "text: a table for each CPU");
    app.add_flag("--histograms", histograms, "text: sizes, runs, seeks and plugs by powers of two, too (JSON always has them)");
    app.add_flag("--per-process", per_process, "count by process, too");
    app.add_flag("--per-partition", per_partition, "count by partition, too (by sector, from the remap events)");
    app.add_flag("--no-latency", no_latency, "do not follow requests: no latencies, and faster");
    app.add_flag("--counts-only", unordered, "do not put events in order either: counts and sizes only, fastest");
    app.add_option("--window", window_mib, "MiB within which a merged stream is put in order")->check(CLI::Range(0.01, 65536.0))
        ->capture_default_str();
    auto* drops = app.add_option("--dropped", dropped, "how many events the kernel dropped (block/DEVICE/dropped in debugfs)")
                      ->check(CLI::NonNegativeNumber);
    app.add_option("--grouping", grouping, "commas in --format blkparse: auto (as blkparse here: if the locale en_US is installed), yes or no")
        ->check(CLI::IsMember({"auto", "yes", "no"}));
    app.add_option("--output,-o", output, "write there instead of standard output; the file appears when it is whole");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    if (interval->count() && format != "csv") {
        fmt::print(stderr, "blktally: --interval is for --format csv\n");
        return 2;
    }
    if (unordered && (format == "blkparse" || format == "csv")) {
        fmt::print(stderr, "blktally: --format {} needs events in order: leave --counts-only out\n", format);
        return 2;
    }

    // A reader that goes away is an output that cannot be written: status 1 and a message, not a silent death.
    std::signal(SIGPIPE, SIG_IGN);
    allow_many_files();

    Output out(output);
    if (!out.open()) {
        fmt::print(stderr, "blktally: cannot write {}: {}\n", out.name(), std::strerror(errno));
        return 1;
    }

    tally::Options options;
    options.lives = !no_latency && !unordered && !check && (format == "text" || format == "json");
    options.order = !unordered && !(check);
    options.processes = per_process;
    options.partitions = per_partition;
    options.window_bytes = static_cast<std::size_t>(window_mib * 1048576);
    if (drops->count())
        options.dropped = dropped;
    if (format == "csv" && !check) {
        if (!interval->count())
            interval_s = 1;
        const double ns = std::round(interval_s * 1e9);
        if (!(ns >= 1 && ns < 9e18)) {
            fmt::print(stderr, "blktally: --interval {} is out of range (1e-9 to 9e9 seconds)\n", interval_s);
            return 2;
        }
        options.interval_ns = static_cast<std::uint64_t>(ns);
        out.write(tally::csv_header());
        options.on_interval = [&](tally::Interval&& i) { out.write(tally::csv_row(i, options.interval_ns)); };
    }

    tally::Summary summary;
    try {
        Progress progress;
        options.on_progress = [&](std::uint64_t bytes) { progress.set(bytes); };
        summary = tally::tally(traces, options);
    } catch (const std::bad_alloc&) {
        fmt::print(stderr, "blktally: out of memory\n");
        return 1;
    }

    if (check) {
        out.write(tally::to_check(summary, strict));
    } else {
        for (const tally::Diagnostic& d : summary.diagnostics)
            fmt::print(stderr, "blktally: {}: {}\n", tally::severity_name(d.severity), d.to_string());
        if (format == "blkparse")
            for (const std::string& difference : tally::blkparse_differences(summary))
                fmt::print(stderr, "blktally: note: {}\n", difference);
        if (summary.partial() && format != "text" && format != "json")
            fmt::print(stderr, "blktally: the totals are partial\n");
        // Nothing at all was read: a table of zeros would look like a result.
        const bool nothing = summary.verdict == tally::Verdict::refused && summary.records == 0;
        if (format == "json")
            out.write(tally::to_json(summary));
        else if (format == "text" && !nothing)
            out.write(tally::to_text(summary, {per_cpu, histograms}));
        else if (format == "blkparse" && !nothing)
            out.write(tally::to_blkparse(summary, grouping == "yes" || (grouping == "auto" && std::setlocale(LC_NUMERIC, "en_US") != nullptr)));
    }
    if (!out.close()) {
        fmt::print(stderr, "blktally: cannot write {}: {}\n", out.name(), std::strerror(out.error()));
        return 1;
    }
    return tally::exit_status(summary, strict);
}
