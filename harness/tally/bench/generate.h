// SPDX-License-Identifier: GPL-2.0-only
//
// A large capture that looks like a busy disk's: processes on all CPUs that queue bios in bursts under a plug, back and front merges,
// requests inserted, dispatched by whoever runs the queue, completed on any CPU, now and then requeued, flushed or discarded. The same
// seed gives the same bytes.
#ifndef TALLY_GENERATE_H
#define TALLY_GENERATE_H

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "format.h"

namespace pageout::tally {

class Generator {
public:
    // put(cpu, bytes) gets each record, in the order of time.
    using Put = std::function<void(std::uint32_t, std::span<const std::byte>)>;

    Generator(std::uint64_t seed, std::uint32_t cpus, Put put) : cpus_(cpus), put_(std::move(put)), state_(seed * 2 + 1), sequence_(cpus) {}

    std::uint64_t run(std::uint64_t events)
    {
        note(note_timestamp, 0, 0, 8);
        for (std::uint32_t pid = 0; pid < 16; ++pid)
            note(note_process, 1000 + pid, pid % cpus_, 16);
        while (written_ < events) {
            const std::uint64_t r = random(100);
            if (r < 34 || at_driver_.size() + queued_.size() < 16)
                burst();
            else if (r < 67)
                dispatch();
            else
                complete();
            if (queued_.size() > 256)
                dispatch();
            if (at_driver_.size() > 64)
                complete();
        }
        return written_;
    }

private:
    struct Request {
        std::uint64_t sector;
        std::uint32_t sectors;
        std::uint32_t flags;
    };

    std::uint64_t random(std::uint64_t below)
    {
        // xorshift64*: fast and good enough to look uneven.
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return ((state_ * 0x2545f4914f6cdd1du) >> 33) % below;
    }

    void event(std::uint32_t cpu, std::uint32_t pid, std::uint32_t action, std::uint64_t sector, std::uint32_t sectors, std::uint64_t pdu = 0,
               std::uint16_t pdu_len = 0)
    {
        time_ += 100 + random(3000);
        std::byte out[sizeof(Record) + 8];
        const Record r{magic, ++sequence_[cpu], time_, sector, sectors * 512, action, pid, 8u << 20, cpu, 0, pdu_len};
        std::memcpy(out, &r, sizeof r);
        pdu = __builtin_bswap64(pdu);
        std::memcpy(out + sizeof r, &pdu, pdu_len);
        put_(cpu, std::span(out, sizeof r + pdu_len));
        ++written_;
    }

    void note(std::uint32_t which, std::uint32_t pid, std::uint32_t cpu, std::uint16_t len)
    {
        std::byte out[sizeof(Record) + 16]{};
        const Record r{magic, 0, time_, 0, 0, which | cat_notify, pid, 8u << 20, cpu, 0, len};
        std::memcpy(out, &r, sizeof r);
        std::memcpy(out + sizeof r, which == note_process ? "worker\0\0\0\0\0\0\0\0\0" : "\0\xf1\x53\x65\0\0\0\0\0\0\0\0\0\0\0", len);
        put_(cpu, std::span(out, sizeof r + len));
    }

    void burst()
    {
        const auto cpu = static_cast<std::uint32_t>(random(cpus_));
        const auto pid = static_cast<std::uint32_t>(1000 + random(16));
        const std::uint64_t what = random(100);
        const std::uint32_t flags = what < 58 ? cat_read | (what < 20 ? cat_ahead : 0) : what < 98 ? cat_write | (what < 70 ? cat_sync : 0)
                                                                                                 : cat_write | cat_discard;
        if (what == 97) {
            event(cpu, pid, act_queue | cat_queue | cat_write | cat_flush | cat_sync, 0, 0);
            event(cpu, pid, act_issue | cat_issue | cat_flush | cat_fs, 0, 0);
            event(static_cast<std::uint32_t>(random(cpus_)), 0, act_complete | cat_complete | cat_flush | cat_fs, 0, 0);
            return;
        }
        event(cpu, pid, act_plug | cat_queue | cat_read, 0, 0);
        std::uint64_t sector = random(1u << 28) * 8;
        plug_.clear();
        const std::uint64_t bios = 1 + random(10);
        for (std::uint64_t i = 0; i < bios; ++i) {
            const auto n = static_cast<std::uint32_t>(random(4) ? 8 : 8 << random(5));
            const std::uint64_t next = random(100);
            if (next >= 60)
                sector = random(1u << 28) * 8;
            event(cpu, pid, act_queue | cat_queue | flags, sector, n);
            if (!plug_.empty() && plug_.back().sector + plug_.back().sectors == sector && plug_.back().sectors < 2048) {
                event(cpu, pid, act_backmerge | cat_queue | flags, sector, n);
                plug_.back().sectors += n;
            } else {
                event(cpu, pid, act_getrq | cat_queue | flags, sector, n);
                plug_.push_back({sector, n, flags});
            }
            sector += n;
        }
        event(cpu, pid, act_unplug_io | cat_queue | cat_read, 0, 0, plug_.size(), 8);
        for (const Request& r : plug_) {
            event(cpu, pid, act_insert | cat_queue | r.flags | cat_fs, r.sector, r.sectors);
            queued_.push_back(r);
        }
    }

    void dispatch()
    {
        if (queued_.empty())
            return;
        const auto cpu = static_cast<std::uint32_t>(random(cpus_));
        const Request r = queued_.front();
        queued_.pop_front();
        event(cpu, 7, act_issue | cat_issue | r.flags | cat_fs, r.sector, r.sectors);
        if (random(1000) == 0) {
            event(cpu, 7, act_requeue | cat_requeue | r.flags | cat_fs, r.sector, r.sectors);
            queued_.push_back(r);
        } else {
            at_driver_.push_back(r);
        }
    }

    void complete()
    {
        if (at_driver_.empty())
            return;
        const std::size_t i = random(at_driver_.size());
        const Request r = at_driver_[i];
        at_driver_[i] = at_driver_.back();
        at_driver_.pop_back();
        event(static_cast<std::uint32_t>(random(cpus_)), 0, act_complete | cat_complete | r.flags | cat_fs, r.sector, r.sectors);
    }

    std::uint32_t cpus_;
    Put put_;
    std::uint64_t state_;
    std::uint64_t time_ = 1000000000;
    std::uint64_t written_ = 0;
    std::vector<std::uint32_t> sequence_;
    std::vector<Request> plug_;
    std::deque<Request> queued_;
    std::vector<Request> at_driver_;
};

}  // namespace pageout::tally

#endif
