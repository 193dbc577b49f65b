// The list of pages that are not free, in parts.
#include <algorithm>
#include <bit>

#include "common/page/page_format.h"
#include "memory_node/directory/directory.h"

namespace farkv {
namespace {

using NamedEntry = std::pair<const PageName, PageEntry>;

bool IsWanted(const PageEntry& entry, const PageQuery& query) {
  const HeldState state =
      entry.stored ? HeldState::kStored : HeldState::kReserved;
  return query.tier.value_or(entry.tier) == entry.tier &&
         query.state.value_or(state) == state;
}

uint64_t GenerationOf(const NamedEntry* entry) {
  return entry->second.handle.generation.value;
}

uint64_t LiveRows(const PageEntry& entry, const KvGeometry& geometry) {
  if (!entry.stored) return 0;
  const PageHeader header(entry.handle.data, geometry);
  uint64_t rows = 0;
  for (int head = 0; head < geometry.num_kv_heads; ++head) {
    rows += static_cast<uint64_t>(std::popcount(header.live(head)));
  }
  return rows;
}

// All but the pins.
HeldPage ReportOfHeld(const Session& session, const NamedEntry& named,
                      absl::Time now) {
  const PageEntry& entry = named.second;
  HeldPage page;
  page.state = entry.stored ? HeldState::kStored : HeldState::kReserved;
  page.session = session.id;
  page.tenant = session.tenant;
  page.instance = session.instance;
  page.worker_id = session.worker_id;
  page.page = named.first;
  page.age = now - entry.since;
  page.t2_bits = entry.t2_bits;
  page.tier = entry.tier;
  page.generation = entry.handle.generation;
  page.bytes = entry.tier == Tier::kT2
                   ? PageLayout::T2(session.geometry, entry.t2_bits).stride
                   : session.stride;
  page.live_rows = LiveRows(entry, session.geometry);
  page.held_for = std::max(session.lease_end - now, absl::ZeroDuration());
  page.storing = entry.storing;
  page.compressing = entry.compressing;
  page.mapped = session.mapped;
  return page;
}

HeldPage ReportOfHeld(const QuarantinedPage& quarantined, Tier tier,
                      absl::Time now) {
  HeldPage page;
  page.state = HeldState::kQuarantined;
  page.session = quarantined.owner;
  page.tenant = quarantined.tenant;
  page.instance = kNoInstance;
  page.tier = tier;
  page.generation = quarantined.handle.generation;
  page.bytes = quarantined.bytes;
  page.held_for = std::max(quarantined.until - now, absl::ZeroDuration());
  page.pins = quarantined.pins;
  return page;
}

}  // namespace

std::vector<const Session*> Directory::SessionsOf(
    const PageQuery& query) const {
  std::vector<const Session*> sessions;
  if (query.state == HeldState::kQuarantined) return sessions;
  for (const auto& [id, session] : sessions_) {
    if (session->instance < query.after_instance) continue;
    if (query.sessions && !query.sessions->Matches(id)) continue;
    if (!session->pages.empty()) sessions.push_back(session.get());
  }
  std::sort(sessions.begin(), sessions.end(),
            [](const Session* a, const Session* b) {
              return a->instance < b->instance;
            });
  return sessions;
}

void Directory::AddPages(const Session& session, const PageQuery& query,
                         std::vector<HeldPage>& pages) const {
  const uint64_t after = session.instance == query.after_instance
                             ? query.after_generation
                             : uint64_t{0};
  std::vector<const NamedEntry*> found;
  for (const NamedEntry& named : session.pages) {
    if (GenerationOf(&named) > after && IsWanted(named.second, query)) {
      found.push_back(&named);
    }
  }
  const size_t shown = std::min(query.count - pages.size(), found.size());
  std::partial_sort(found.begin(),
                    found.begin() + static_cast<ptrdiff_t>(shown), found.end(),
                    [](const NamedEntry* a, const NamedEntry* b) {
                      return GenerationOf(a) < GenerationOf(b);
                    });
  const absl::Time now = clock_.Now();
  for (size_t i = 0; i < shown; ++i) {
    pages.push_back(ReportOfHeld(session, *found[i], now));
    pages.back().pins = PoolOf(found[i]->second).pins(found[i]->second.handle);
  }
}

void Directory::AddQuarantined(const PageQuery& query,
                               std::vector<HeldPage>& pages) const {
  if (query.state.value_or(HeldState::kQuarantined) !=
      HeldState::kQuarantined) {
    return;
  }
  const Generation after{query.after_instance == kNoInstance
                             ? query.after_generation
                             : uint64_t{0}};
  const size_t room = query.count - pages.size();
  const absl::Time now = clock_.Now();
  std::vector<HeldPage> found;
  const auto add = [&](const PagePool* pool, Tier tier) {
    if (pool == nullptr || query.tier.value_or(tier) != tier) return;
    for (const auto& page : pool->Quarantined(after, room, query.sessions)) {
      found.push_back(ReportOfHeld(page, tier, now));
    }
  };
  add(&pool_, Tier::kT1);
  add(t2_.pool, Tier::kT2);
  std::sort(found.begin(), found.end(),
            [](const HeldPage& a, const HeldPage& b) {
              return a.generation.value < b.generation.value;
            });
  if (found.size() > room) found.resize(room);
  pages.insert(pages.end(), found.begin(), found.end());
}

std::vector<HeldPage> Directory::ListPages(const PageQuery& query) const {
  std::vector<HeldPage> pages;
  {
    absl::MutexLock lock(&mutex_);
    for (const Session* session : SessionsOf(query)) {
      if (pages.size() >= query.count) return pages;
      AddPages(*session, query, pages);
    }
  }
  if (pages.size() < query.count) AddQuarantined(query, pages);
  return pages;
}

}  // namespace farkv
