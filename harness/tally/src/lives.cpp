// SPDX-License-Identifier: GPL-2.0-only
#include "lives.h"

namespace pageout::tally {

std::uint32_t Lives::take_bio(LifeKind kind, std::uint64_t sector, std::uint32_t n)
{
    const std::size_t at = waiting_bios_.find(
        sector, [&](std::uint32_t b) { return bios_[b].sectors == n && bios_[b].kind == kind; });
    if (at == PlaceTable::missing)
        return none;
    const std::uint32_t bio = waiting_bios_.value(at);
    waiting_bios_.erase(at);
    return bio;
}

std::uint32_t Lives::new_request(LifeKind kind, std::uint64_t sector, std::uint64_t n)
{
    if (bios_.live() + requests_.live() >= most_) [[unlikely]]
        limit();
    const std::uint32_t r = requests_.take();
    requests_[r] = Request{sector, n, 0, 0, 0, none, none, none, kind, false, false, false};
    starts_.insert(sector, r);
    return r;
}

// A request that was made before the capture begins.
std::uint32_t Lives::from_before(LifeKind kind, std::uint64_t sector, std::uint64_t n)
{
    ++orphans_[kind];
    ++started_before_[kind];
    return new_request(kind, sector, n);
}

// A request that is not at the driver: of that very size where there is one, else the first that starts there.
std::size_t Lives::find_waiting(LifeKind kind, std::uint64_t sector, std::uint64_t n) const
{
    const std::size_t at = starts_.find(sector, [&](std::uint32_t r) {
        const Request& q = requests_[r];
        return q.sectors == n && q.kind == kind && !q.at_driver;
    });
    if (at != PlaceTable::missing) [[likely]]
        return at;
    return starts_.find(sector, [&](std::uint32_t r) { return requests_[r].kind == kind && !requests_[r].at_driver; });
}

std::size_t Lives::find_by_end(LifeKind kind, std::uint64_t end) const
{
    return ends_.find(end, [&](std::uint32_t r) { return requests_[r].kind == kind; });
}

void Lives::erase_end(std::uint32_t request)
{
    const Request& q = requests_[request];
    const std::size_t at = ends_.find(q.start + q.sectors, [&](std::uint32_t r) { return r == request; });
    if (at != PlaceTable::missing)
        ends_.erase(at);
}

void Lives::end_bio(std::uint32_t bio, std::uint64_t time)
{
    const Bio& b = bios_[bio];
    if (b.parent == none) [[likely]] {
        sample(b.kind, q2c, b.queued, time);
    } else if (--parents_[b.parent].parts == 0) {
        // A split bio is complete with the last of its parts.
        sample(b.kind, q2c, parents_[b.parent].queued, time);
        parents_.give(b.parent);
    }
    bios_.give(bio);
}

void Lives::drop_bio(std::uint32_t bio)
{
    const std::uint32_t parent = bios_[bio].parent;
    if (parent != none && --parents_[parent].parts == 0)
        parents_.give(parent);
    bios_.give(bio);
}

void Lives::drop_bios(std::uint32_t first)
{
    while (first != none) {
        const std::uint32_t next = bios_[first].next;
        drop_bio(first);
        first = next;
    }
}

// Too much in flight to be true: halves of lives whose other halves were lost. The older half of them goes.
void Lives::limit()
{
    std::vector<std::uint64_t> times;
    const auto last_seen = [&](const Request& q) {
        std::uint64_t t = 0;
        if (q.has_got)
            t = std::max(t, q.got);
        if (q.has_inserted)
            t = std::max(t, q.inserted);
        if (q.at_driver)
            t = std::max(t, q.dispatched);
        return t;
    };
    waiting_bios_.for_each([&](std::uint32_t b) { times.push_back(bios_[b].queued); });
    starts_.for_each([&](std::uint32_t r) { times.push_back(last_seen(requests_[r])); });
    if (times.empty())
        return;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    const std::uint64_t oldest_kept = *middle;

    PlaceTable bios, starts, ends;
    waiting_bios_.for_each([&](std::uint32_t b) {
        if (bios_[b].queued > oldest_kept) {
            bios.insert(bios_[b].sector, b);
        } else {
            ++forgotten_;
            ++forgotten_waiting_[bios_[b].kind];
            drop_bio(b);
        }
    });
    starts_.for_each([&](std::uint32_t r) {
        const Request& q = requests_[r];
        if (last_seen(q) > oldest_kept) {
            starts.insert(q.start, r);
            if (!q.at_driver)
                ends.insert(q.start + q.sectors, r);
        } else {
            ++forgotten_;
            forgotten_waiting_[q.kind] += !q.at_driver;
            drop_bios(q.first);
            requests_.give(r);
        }
    });
    waiting_bios_ = std::move(bios);
    starts_ = std::move(starts);
    ends_ = std::move(ends);
}

void Lives::queue(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    if (bios_.live() + requests_.live() >= most_) [[unlikely]]
        limit();
    const std::uint32_t b = bios_.take();
    bios_[b] = Bio{sector, time, n, none, none, kind};
    waiting_bios_.insert(sector, b);
}

void Lives::split(LifeKind kind, std::uint64_t sector, std::uint32_t n)
{
    if (bios_.live() + requests_.live() >= most_) [[unlikely]]
        limit();
    const std::size_t at = waiting_bios_.find(
        sector, [&](std::uint32_t b) { return bios_[b].sectors > n && bios_[b].kind == kind; });
    if (at == PlaceTable::missing) {
        // Its two parts will appear from nowhere, one of them on this event's account.
        ++orphans_[kind];
        --started_before_[kind];
        return;
    }
    const std::uint32_t front = waiting_bios_.value(at);
    const std::uint32_t rest = bios_.take();
    Bio& f = bios_[front];
    if (f.parent == none) {
        f.parent = parents_.take();
        parents_[f.parent] = Parent{f.queued, 1, none};
    }
    ++parents_[f.parent].parts;
    bios_[rest] = Bio{sector + n, f.queued, f.sectors - n, none, f.parent, kind};
    f.sectors = n;
    waiting_bios_.insert(sector + n, rest);
}

void Lives::getrq(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::uint32_t b = take_bio(kind, sector, n);
    const std::uint32_t r = new_request(kind, sector, n);
    Request& q = requests_[r];
    q.got = time;
    q.has_got = true;
    ends_.insert(sector + n, r);
    if (b == none) {
        ++orphans_[kind];
        ++started_before_[kind];
        return;
    }
    sample(kind, q2g, bios_[b].queued, time);
    q.first = q.last = b;
}

// A bio that is merged; none when it was queued before the capture.
std::uint32_t Lives::merged_bio(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::uint32_t b = take_bio(kind, sector, n);
    if (b != none)
        sample(kind, q2m, bios_[b].queued, time);
    else
        ++started_before_[kind];
    return b;
}

// Is the request that a bio is merged into known? Without it, the bio's life cannot be followed.
bool Lives::joins(LifeKind kind, std::uint32_t bio, std::size_t request_at)
{
    const bool known = request_at != PlaceTable::missing;
    if (bio == none || !known)
        ++orphans_[kind];
    if (bio != none && !known)
        drop_bio(bio);
    return known;
}

// The bios first to last, which are linked, go after those of the request.
void Lives::append(Request& to, std::uint32_t first, std::uint32_t last)
{
    if (first == none)
        return;
    if (to.last == none)
        to.first = first;
    else
        bios_[to.last].next = first;
    to.last = last;
}

void Lives::back_merge(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::uint32_t b = merged_bio(kind, sector, n, time);
    const std::size_t at = find_by_end(kind, sector);
    if (!joins(kind, b, at))
        return;
    const std::uint32_t r = ends_.value(at);
    ends_.erase(at);
    Request& q = requests_[r];
    q.sectors += n;
    ends_.insert(q.start + q.sectors, r);
    append(q, b, b);
}

void Lives::front_merge(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::uint32_t b = merged_bio(kind, sector, n, time);
    const std::size_t at = starts_.find(
        sector + n, [&](std::uint32_t r) { return requests_[r].kind == kind && !requests_[r].at_driver; });
    if (!joins(kind, b, at))
        return;
    const std::uint32_t r = starts_.value(at);
    starts_.erase(at);
    Request& q = requests_[r];
    q.start = sector;
    q.sectors += n;
    starts_.insert(sector, r);
    if (b == none)
        return;
    bios_[b].next = q.first;
    q.first = b;
    if (q.last == none)
        q.last = b;
}

void Lives::request_merge(LifeKind kind, std::uint64_t sector, std::uint32_t n)
{
    const std::size_t next_at = find_waiting(kind, sector, n);
    const std::size_t before_at = find_by_end(kind, sector);
    const std::uint32_t next = next_at == PlaceTable::missing ? none : starts_.value(next_at);
    const std::uint32_t before = before_at == PlaceTable::missing ? none : ends_.value(before_at);
    if (next == none || before == none || next == before)
        ++orphans_[kind];
    if (next == none || next == before)
        ++started_before_[kind];
    std::uint32_t first = none, last = none;
    if (next != none && next != before) {
        erase_end(next);
        starts_.erase(next_at);
        first = requests_[next].first;
        last = requests_[next].last;
        requests_.give(next);
    }
    if (before == none) {
        drop_bios(first);
        return;
    }
    erase_end(before);
    Request& q = requests_[before];
    q.sectors += n;
    ends_.insert(q.start + q.sectors, before);
    append(q, first, last);
}

void Lives::insert(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::size_t at = find_waiting(kind, sector, n);
    std::uint32_t r;
    if (at == PlaceTable::missing) {
        r = from_before(kind, sector, n);
        ends_.insert(sector + n, r);
    } else {
        r = starts_.value(at);
        if (requests_[r].has_got) {
            sample(kind, g2i, requests_[r].got, time);
            requests_[r].has_got = false;  // once: a requeued request is inserted again
        }
    }
    requests_[r].inserted = time;
    requests_[r].has_inserted = true;
}

void Lives::dispatch(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::size_t at = find_waiting(kind, sector, n);
    std::uint32_t r;
    if (at == PlaceTable::missing) {
        r = from_before(kind, sector, n);
    } else {
        r = starts_.value(at);
        erase_end(r);
        if (requests_[r].has_inserted)
            sample(kind, i2d, requests_[r].inserted, time);
    }
    Request& q = requests_[r];
    q.sectors = n;
    q.dispatched = time;
    q.at_driver = true;
    q.has_inserted = false;
}

void Lives::requeue(LifeKind kind, std::uint64_t sector, std::uint32_t n)
{
    const std::size_t at = starts_.find(
        sector, [&](std::uint32_t r) { return requests_[r].kind == kind && requests_[r].at_driver; });
    std::uint32_t r;
    if (at == PlaceTable::missing) {
        ++orphans_[kind];
        r = new_request(kind, sector, n);
    } else {
        r = starts_.value(at);
        requests_[r].at_driver = false;
    }
    ends_.insert(requests_[r].start + requests_[r].sectors, r);
}

void Lives::complete_request(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const auto at_driver = [&](std::uint32_t r) { return requests_[r].kind == kind && requests_[r].at_driver; };
    std::size_t at = starts_.find(sector, [&](std::uint32_t r) { return at_driver(r) && requests_[r].sectors == n; });
    if (at == PlaceTable::missing)
        at = starts_.find(sector, at_driver);
    if (at == PlaceTable::missing) {
        // Ended without having been dispatched, as a request does that fails before the driver saw it.
        ++orphans_[kind];
        at = find_waiting(kind, sector, n);
        if (at == PlaceTable::missing)
            return;
        erase_end(starts_.value(at));
        if (n >= requests_[starts_.value(at)].sectors)
            ++ended_early_[kind];
    }
    const std::uint32_t r = starts_.value(at);
    starts_.erase(at);
    Request& q = requests_[r];
    const bool whole = n >= q.sectors;
    while (q.first != none) {
        const Bio& b = bios_[q.first];
        if (!whole && (b.sector - q.start) + b.sectors > n)
            break;
        const std::uint32_t next = b.next;
        end_bio(q.first, time);
        q.first = next;
    }
    if (q.first == none)
        q.last = none;
    if (whole) {
        if (q.at_driver)
            sample(kind, d2c, q.dispatched, time);
        requests_.give(r);
        return;
    }
    q.start += n;
    q.sectors -= n;
    starts_.insert(q.start, r);
    if (!q.at_driver)
        ends_.insert(q.start + q.sectors, r);
}

void Lives::complete_bio(LifeKind kind, std::uint64_t sector, std::uint32_t n, std::uint64_t time)
{
    const std::uint32_t b = take_bio(kind, sector, n);
    if (b == none) {
        ++orphans_[kind];
    } else {
        ++ended_early_[kind];
        end_bio(b, time);
    }
}

std::array<std::uint64_t, life_kinds> Lives::unfinished() const
{
    std::array<std::uint64_t, life_kinds> left{};
    waiting_bios_.for_each([&](std::uint32_t b) { ++left[bios_[b].kind]; });
    starts_.for_each([&](std::uint32_t r) {
        const Request& q = requests_[r];
        if (q.first == none)
            ++left[q.kind];
        for (std::uint32_t b = q.first; b != none; b = bios_[b].next)
            ++left[q.kind];
    });
    return left;
}

std::array<std::int64_t, life_kinds> Lives::waiting() const
{
    std::array<std::int64_t, life_kinds> left = forgotten_waiting_;
    waiting_bios_.for_each([&](std::uint32_t b) { ++left[bios_[b].kind]; });
    starts_.for_each([&](std::uint32_t r) { left[requests_[r].kind] += !requests_[r].at_driver; });
    return left;
}

}  // namespace pageout::tally
