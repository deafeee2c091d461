// SPDX-License-Identifier: GPL-2.0-only
//
// What the inputs are, and how their events come together in time.
#include "pageout/tally.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fcntl.h>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine.h"
#include "stream.h"

namespace pageout::tally {

namespace {

namespace fs = std::filesystem;

struct Input {
    std::string path;  // "-": standard input
    std::uint32_t group = 0;
    std::optional<std::uint32_t> cpu;
};

// The events of one file or stream, in the order of their time as far as one CPU's order tells. They are taken by the batch: that is
// faster than to go through the stream for each.
struct Feed {
    static constexpr std::size_t batch_events = 16;

    std::unique_ptr<Stream> stream;
    std::unique_ptr<Reorder> reorder;
    std::unique_ptr<Event[]> batch = std::make_unique_for_overwrite<Event[]>(batch_events);
    std::size_t at = 0, filled = 0;

    // Null at the end.
    const Event* next()
    {
        if (at == filled && !fill()) [[unlikely]]
            return nullptr;
        return &batch[at++];
    }

private:
    bool fill()
    {
        at = filled = 0;
        if (reorder)
            while (filled < batch_events && reorder->next(batch[filled]))
                ++filled;
        else if (stream)
            filled = stream->next(std::span(batch.get(), batch_events));
        return filled != 0;
    }
};

// Merges feeds by time. Among events of the same nanosecond the feed that has the turn goes on, and of the others the one that came
// to that time last goes first: an arbitrary order, but the one in which blkparse meets them.
//
// A tree of losers. A key is the time, above the turn (the later is the smaller) and the number of the feed, in one wide integer:
// which CPU has the next event cannot be predicted, so there must be nothing to branch on.
class Merge {
public:
    Merge(std::vector<Feed>& feeds, Engine& engine) : feeds_(feeds), engine_(engine) {}

    void run()
    {
        std::size_t leaves = 1;
        while (leaves < feeds_.size())
            leaves *= 2;
        std::vector<const Event*> head(leaves, nullptr);
        std::vector<Key> key(leaves, at_end);
        std::size_t alive = 0, first = 0;
        for (std::size_t i = 0; i < feeds_.size(); ++i) {
            head[i] = feeds_[i].next();
            if (!head[i])
                continue;
            key[i] = key_of(head[i]->time, i);
            // Whoever has the turn keeps it against a newcomer of the same time.
            if (alive && head[i]->time == head[first]->time) {
                key[i] = with_feed(key[first], i);
                key[first] = key_of(head[first]->time, first);
            }
            if (!alive++ || head[i]->time < head[first]->time)
                first = i;
        }
        std::vector<Key> loser(leaves, at_end);
        Key winner = play(loser, key, 1, leaves);
        while (alive) {
            const auto w = static_cast<std::size_t>(winner & feed_mask);
            engine_.account(*head[w]);
            head[w] = feeds_[w].next();
            if (head[w]) [[likely]] {
                winner = key_of(head[w]->time, w);
            } else {
                winner = at_end;
                --alive;
            }
            for (std::size_t i = (leaves + w) / 2; i > 0; i /= 2) {
                const Key other = loser[i];
                const bool lost = other < winner;
                loser[i] = lost ? winner : other;
                winner = lost ? other : winner;
            }
        }
    }

private:
    using Key = unsigned __int128;
    static constexpr unsigned feed_bits = 20;  // more files than can be open
    static constexpr std::uint64_t feed_mask = (std::uint64_t{1} << feed_bits) - 1;
    static constexpr Key at_end = ~Key{0};

    Key key_of(std::uint64_t time, std::size_t feed)
    {
        --turns_;
        return static_cast<Key>(time) << 64 | turns_ << feed_bits | feed;
    }
    static Key with_feed(Key key, std::size_t feed) { return (key & ~static_cast<Key>(feed_mask)) | feed; }

    // The winner below a node; the losers stay in the nodes.
    static Key play(std::vector<Key>& loser, const std::vector<Key>& key, std::size_t node, std::size_t leaves)
    {
        if (node >= leaves)
            return key[node - leaves];
        const Key a = play(loser, key, 2 * node, leaves), b = play(loser, key, 2 * node + 1, leaves);
        loser[node] = std::max(a, b);
        return std::min(a, b);
    }

    std::vector<Feed>& feeds_;
    Engine& engine_;
    std::uint64_t turns_ = std::uint64_t{1} << (64 - feed_bits - 1);
};

void run(Engine& engine, std::vector<Feed>& feeds, bool ordered)
{
    if (ordered && feeds.size() > 1) {
        Merge(feeds, engine).run();
        return;
    }
    for (Feed& f : feeds) {
        while (const Event* e = f.next())
            engine.account(*e);
        f = {};
    }
}

// NAME.blktrace.N, N in decimal; also NAME.blktrace.N.gz and .zst.
std::optional<std::uint32_t> cpu_of_name(std::string_view rest)
{
    for (const std::string_view end : {".gz", ".zst"})
        if (rest.ends_with(end)) {
            rest.remove_suffix(end.size());
            break;
        }
    std::uint32_t n = 0;
    const auto [p, ec] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (ec != std::errc() || p != rest.data() + rest.size() || rest.empty() || (rest.size() > 1 && rest.front() == '0'))
        return std::nullopt;
    return n;
}

constexpr std::string_view infix = ".blktrace.";

struct CpuFile {
    std::uint32_t cpu;
    std::string path;
};

std::vector<CpuFile> cpu_files(const std::string& base)
{
    const fs::path p(base);
    const std::string prefix = p.filename().string() + std::string(infix);
    std::vector<CpuFile> files;
    std::error_code ec;
    const fs::path dir = p.has_parent_path() ? p.parent_path() : fs::path(".");
    for (fs::directory_iterator it(dir, ec), end; !ec && it != end; it.increment(ec)) {
        const std::string name = it->path().filename().string();
        if (name.size() <= prefix.size() || name.compare(0, prefix.size(), prefix) != 0)
            continue;
        if (const auto cpu = cpu_of_name(std::string_view(name).substr(prefix.size())))
            files.push_back({*cpu, p.has_parent_path() ? (dir / name).string() : name});
    }
    std::sort(files.begin(), files.end(), [](const CpuFile& a, const CpuFile& b) {
        return a.cpu != b.cpu ? a.cpu < b.cpu : a.path.size() < b.path.size();
    });
    return files;
}

// blkparse names a basename's blocks by its last part, unless there is no directory to take away.
std::string blkparse_name(const std::string& base)
{
    const fs::path p(base);
    return p.parent_path().empty() || p.parent_path() == "." ? base : p.filename().string();
}

class Reading {
public:
    explicit Reading(const Options& options) : options_(options), engine_(options, diagnostics_) {}

    void refuse(const std::string& file, std::string_view code, std::string text)
    {
        diagnostics_.add(Severity::refused, file, std::nullopt, std::nullopt, code, std::move(text));
    }
    void remark(const std::string& file, std::string_view code, std::string text)
    {
        diagnostics_.add(Severity::note, file, std::nullopt, std::nullopt, code, std::move(text));
    }

    void add_input(const std::string& name)
    {
        if (name == "-") {
            if (stdin_taken_) {
                refuse("<stdin>", "repeated", "standard input can be read once only");
                return;
            }
            stdin_taken_ = true;
            inputs_.push_back({"-", engine_.add_group("<stdin>", false), std::nullopt});
            return;
        }
        const std::vector<CpuFile> files = cpu_files(name);
        if (!files.empty()) {
            add_basename(name, files);
            return;
        }
        struct stat st;
        if (::stat(name.c_str(), &st) != 0) {
            const int error = errno;
            refuse(name, "missing", fmt::format("cannot open it: {}, and there are no files {}{}N", std::strerror(error), name, infix));
            return;
        }
        if (S_ISDIR(st.st_mode)) {
            refuse(name, "directory", fmt::format("this is a directory; give the basename of the capture in it, as {}/sda for {}/sda{}0", name,
                                                  name, infix));
            return;
        }
        const std::size_t at = name.rfind(infix);
        const auto cpu = at == std::string::npos ? std::nullopt : cpu_of_name(std::string_view(name).substr(at + infix.size()));
        if (!cpu) {
            add_file({name, engine_.add_group(name, false), std::nullopt});
            return;
        }
        // Files of one basename, given one by one, are one capture.
        const std::string base = name.substr(0, at);
        const auto [it, fresh] = bases_.try_emplace(base);
        if (fresh)
            it->second.group = engine_.add_group(blkparse_name(base), true);
        if (add_file({name, it->second.group, cpu}))
            ++it->second.given;
    }

    void open_all()
    {
        for (const auto& [base, b] : bases_)
            if (const std::size_t all = cpu_files(base).size(); b.given && b.given < all)
                remark(base, "one-of-many", fmt::format("{} of the files of {} CPUs were given; give {} to read them all", b.given, all, base));
        // Buffers of several files together should fit the second-level cache.
        const std::size_t buffer = inputs_.size() <= 2 ? 256 * 1024 : Stream::least_buffer;
        for (const Input& in : inputs_) {
            Fd fd(in.path == "-" ? ::dup(STDIN_FILENO) : ::open(in.path.c_str(), O_RDONLY | O_CLOEXEC));
            const std::string name = in.path == "-" ? "<stdin>" : in.path;
            if (!fd) {
                const int error = errno;
                refuse(name, "unreadable",
                       fmt::format("cannot open it: {}{}", std::strerror(error),
                                   error == EMFILE ? " (each CPU's file needs a descriptor: raise the limit with ulimit -n)" : ""));
                continue;
            }
            StreamSetup setup{name, in.group, in.cpu, buffer, &options_.on_progress};
            add_feed(std::make_unique<Stream>(engine_, diagnostics_, decompressed(source_from_fd(std::move(fd))), setup), setup);
        }
    }

    void add_memory(std::span<const std::byte> stream, std::string_view name)
    {
        StreamSetup setup{std::string(name), engine_.add_group(std::string(name), false), std::nullopt, Stream::least_buffer, nullptr};
        add_feed(is_packed(stream) ? std::make_unique<Stream>(engine_, diagnostics_, decompressed(source_from_memory(stream)), setup)
                                   : std::make_unique<Stream>(engine_, diagnostics_, stream, setup), setup);
    }

    Summary finish()
    {
        run(engine_, feeds_, ordered());
        Summary s = engine_.finish();
        judge(s);
        s.diagnostics = diagnostics_.take();
        s.verdict = diagnostics_.verdict();
        return s;
    }

private:
    void add_feed(std::unique_ptr<Stream> stream, const StreamSetup& setup)
    {
        Feed f;
        f.stream = std::move(stream);
        if (!setup.cpu && ordered())
            f.reorder = std::make_unique<Reorder>(engine_, *f.stream, diagnostics_, setup.name, options_.window_bytes);
        feeds_.push_back(std::move(f));
    }

    bool ordered() const { return options_.order || options_.lives || options_.interval_ns; }

    void add_basename(const std::string& base, const std::vector<CpuFile>& files)
    {
        const std::uint32_t group = engine_.add_group(blkparse_name(base), true);
        std::vector<std::string> missing;
        std::uint32_t expected = 0;
        for (const CpuFile& f : files) {
            if (f.cpu + 1 == expected && expected) {
                remark(f.path, "twice", fmt::format("CPU {} is there already, in another form; this file is not read", f.cpu));
                continue;
            }
            for (; expected < f.cpu; ++expected)
                if (missing.size() < 20)
                    missing.push_back(std::to_string(expected));
            ++expected;
            (void)add_file({f.path, group, f.cpu});
        }
        if (!missing.empty())
            remark(base, "hole", fmt::format("there is no file for CPU {}{}: right if that CPU was offline, else its events are missing",
                                             fmt::join(missing, ", "), missing.size() == 20 ? ", …" : ""));
    }

    // False when the same file is an input already.
    bool add_file(Input input)
    {
        struct stat st;
        if (::stat(input.path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && !files_.emplace(st.st_dev, st.st_ino).second) {
            remark(input.path, "repeated-file", "this file is an input already; it is read once");
            return false;
        }
        inputs_.push_back(std::move(input));
        return true;
    }

    // What only the whole capture tells.
    void judge(const Summary& s)
    {
        if (options_.dropped && *options_.dropped)
            diagnostics_.add(Severity::damage, "", std::nullopt, std::nullopt, "dropped",
                             fmt::format("the kernel dropped {} events for want of buffer space: counts are too low; trace with more or larger "
                                         "buffers (blktrace -b KIB -n COUNT)", *options_.dropped));
        if (diagnostics_.verdict() != Verdict::refused && !s.total.events && !s.unknown_events && diagnostics_.verdict() == Verdict::ok)
            remark("", "no-events", s.records ? "the capture holds notes only, no event" : "the capture holds nothing");
        std::map<DeviceId, unsigned> seen;
        for (const Device& d : s.devices) {
            const std::string what = fmt::format("device {},{}", d.id.major, d.id.minor);
            if (d.bio_based)
                remark(d.input, "bio-based", what + " handles bios itself (as device mapper, md, zram and brd do): there are no requests, "
                                                    "dispatches or merges to count, only bios queued and completed");
            if (d.above_another)
                remark(d.input, "above-another", what + "'s bios arrive again at another device of this capture: it is not in the total");
            if (++seen[d.id] == 2)
                remark(d.input, "same-device", what + " is in several inputs; they are counted apart and both are in the total");
        }
    }

    Options options_;
    Diagnostics diagnostics_;
    Engine engine_;
    std::vector<Input> inputs_;
    std::vector<Feed> feeds_;
    struct Base {
        std::uint32_t group = 0;
        std::size_t given = 0;
    };
    std::map<std::string, Base> bases_;             // of files given one by one
    std::set<std::pair<dev_t, ino_t>> files_;
    bool stdin_taken_ = false;
};

}  // namespace

Summary tally(std::span<const std::string> inputs, const Options& options)
{
    Reading reading(options);
    for (const std::string& name : inputs)
        reading.add_input(name);
    reading.open_all();
    return reading.finish();
}

Summary tally_bytes(std::span<const std::byte> stream, std::string_view name, const Options& options)
{
    Reading reading(options);
    reading.add_memory(stream, name);
    return reading.finish();
}

int exit_status(const Summary& summary, bool strict)
{
    switch (summary.verdict) {
    case Verdict::refused: return 1;
    case Verdict::damage: return 3;
    case Verdict::ok: break;
    }
    return strict && !summary.diagnostics.empty() ? 3 : 0;
}

std::uint64_t Histogram::total() const
{
    std::uint64_t n = 0;
    for (const std::uint64_t b : bucket)
        n += b;
    return n;
}

void Histogram::operator+=(const Histogram& o)
{
    for (std::size_t i = 0; i < bucket.size(); ++i)
        bucket[i] += o.bucket[i];
}

Count Flow::merged_bio() const
{
    Count c = merged_back;
    return c += merged_front;
}

Count Flow::merged() const
{
    Count c = merged_bio();
    return c += merged_request;
}

std::int64_t Flow::identity_residue() const
{
    return static_cast<std::int64_t>(queued.count + split.count - dispatched.count + requeued.count - merged().count);
}

bool Flow::any() const
{
    return (queued.count | split.count | bounced.count | remapped.count | allocated.count | slept.count | merged_back.count |
            merged_front.count | merged_request.count | inserted.count | dispatched.count | requeued.count | completed.count) != 0;
}

void Flow::operator+=(const Flow& o)
{
    queued += o.queued;
    split += o.split;
    bounced += o.bounced;
    remapped += o.remapped;
    allocated += o.allocated;
    slept += o.slept;
    merged_back += o.merged_back;
    merged_front += o.merged_front;
    merged_request += o.merged_request;
    inserted += o.inserted;
    dispatched += o.dispatched;
    requeued += o.requeued;
    completed += o.completed;
    failed += o.failed;
}

void Direction::operator+=(const Direction& o)
{
    Flow::operator+=(o);
    dispatched_bytes += o.dispatched_bytes;
    run_bytes += o.run_bytes;
    sequential += o.sequential;
    seek_sectors += o.seek_sectors;
    orphans += o.orphans;
    unfinished += o.unfinished;
    waiting += o.waiting;
    ended_early += o.ended_early;
    started_before += o.started_before;
}

std::string Diagnostic::to_string() const
{
    std::string s = file;
    if (record)
        s += fmt::format("{}record {}", s.empty() ? "" : ": ", *record);
    if (offset)
        s += fmt::format("{}byte {}", s.empty() ? "" : (record ? ", " : ": "), *offset);
    s += fmt::format("{}{}", s.empty() ? "" : ": ", text);
    if (times > 1)
        s += fmt::format(" (and {} more like this)", times - 1);
    return s;
}

void BlkparseStats::operator+=(const BlkparseStats& o)
{
    const auto add = [](std::array<Item, 2>& to, const std::array<Item, 2>& from) {
        for (std::size_t rw = 0; rw < 2; ++rw) {
            to[rw].count += from[rw].count;
            to[rw].kb += from[rw].kb;
            to[rw].b += from[rw].b;
        }
    };
    add(queued, o.queued);
    add(dispatched, o.dispatched);
    add(requeued, o.requeued);
    add(completed, o.completed);
    add(merged, o.merged);
    add(pc_queued, o.pc_queued);
    add(pc_dispatched, o.pc_dispatched);
    add(pc_requeued, o.pc_requeued);
    add(pc_completed, o.pc_completed);
    io_unplugs += o.io_unplugs;
    timer_unplugs += o.timer_unplugs;
}

}  // namespace pageout::tally
