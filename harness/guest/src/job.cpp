// SPDX-License-Identifier: GPL-2.0-only
#include "pageout/job.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <initializer_list>
#include <limits>

#include <nlohmann/json.hpp>

namespace pageout::job {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view magic = "PGOUTJOB";

[[noreturn]] void fail(const std::string &where, const std::string &what)
{
	throw JobError("job: " + where + ": " + what);
}

// An object whose members must all be asked for: what was not is unknown.
class Object {
public:
	Object(const Json &json, std::string where) : json_(json), where_(std::move(where))
	{
		if (!json_.is_object())
			fail(where_, "is not an object");
	}

	void known(std::initializer_list<std::string_view> names) const
	{
		for (const auto &item : json_.items())
			if (std::find(names.begin(), names.end(), item.key()) == names.end())
				fail(where_, "unknown member \"" + item.key() + "\"");
	}

	const Json *find(const char *name) const
	{
		const auto at = json_.find(name);
		return at == json_.end() ? nullptr : &*at;
	}

	const Json &need(const char *name) const
	{
		const Json *value = find(name);
		if (!value)
			fail(where_, std::string("has no member \"") + name + "\"");
		return *value;
	}

	std::string path(const char *name) const { return where_ + "." + name; }

	std::string text(const char *name) const
	{
		const Json &value = need(name);
		if (!value.is_string())
			fail(path(name), "is not a string");
		auto text = value.get<std::string>();
		if (text.find('\0') != std::string::npos)
			fail(path(name), "holds a NUL");
		return text;
	}

	bool boolean(const char *name, bool otherwise) const
	{
		const Json *value = find(name);
		if (!value)
			return otherwise;
		if (!value->is_boolean())
			fail(path(name), "is not true or false");
		return value->get<bool>();
	}

	std::int64_t integer(const char *name, std::int64_t low, std::int64_t high) const
	{
		const Json &value = need(name);
		if (!value.is_number_integer())
			fail(path(name), "is not an integer");
		const bool too_big = value.is_number_unsigned() &&
				     value.get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max());
		const auto number = too_big ? high : value.get<std::int64_t>();
		if (too_big || number < low || number > high)
			fail(path(name), "is not from " + std::to_string(low) + " to " + std::to_string(high));
		return number;
	}

	const Json &array(const char *name) const
	{
		const Json &value = need(name);
		if (!value.is_array())
			fail(path(name), "is not an array");
		return value;
	}

	template <typename T>
	T choice(const char *name, std::initializer_list<std::pair<std::string_view, T>> choices) const
	{
		const auto value = text(name);
		std::string all;
		for (const auto &[word, meaning] : choices) {
			if (value == word)
				return meaning;
			all += all.empty() ? "" : ", ";
			all += word;
		}
		fail(path(name), "\"" + value + "\" is not one of " + all);
	}

private:
	const Json &json_;
	std::string where_;
};

std::string element(const char *name, std::size_t index)
{
	return std::string(name) + "[" + std::to_string(index) + "]";
}

bool is_name(std::string_view name)
{
	return !name.empty() && name.size() <= 16 &&
	       std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
}

// A word of simdisk's line: anything printable without a blank in it.
bool is_word(std::string_view word)
{
	return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isgraph(c); });
}

Disk parse_disk(const Json &json, const std::string &where)
{
	const Object object(json, where);
	object.known({"name", "role", "model", "phys", "bytes", "scheduler", "priority", "params"});
	Disk disk;
	disk.name = object.text("name");
	if (!is_name(disk.name) || disk.name == "prog")
		fail(object.path("name"), "\"" + disk.name + "\" is not a disk's name (1 to 16 letters, digits, - or _; not prog)");
	disk.role = object.choice<Role>("role", {{"swap", Role::swap}, {"ext4", Role::ext4}, {"raw", Role::raw}});
	disk.model = object.text("model");
	if (!is_word(disk.model))
		fail(object.path("model"), "is empty or has a blank in it");
	disk.phys = std::uint64_t(object.integer("phys", 4096, std::int64_t{1} << 46));
	disk.bytes = std::uint64_t(object.integer("bytes", 65536, std::int64_t{1} << 40));
	if (disk.phys % 4096 || disk.bytes % 4096)
		fail(where, "phys and bytes must be multiples of 4096");
	if (object.find("scheduler"))
		disk.scheduler = object.text("scheduler");
	if (object.find("priority"))
		disk.priority = int(object.integer("priority", -1, 32767));
	if (const Json *params = object.find("params")) {
		if (!params->is_object())
			fail(object.path("params"), "is not an object");
		for (const auto &item : params->items()) {
			const auto &value = item.value();
			std::string word;
			if (value.is_string())
				word = value.get<std::string>();
			else if (value.is_number_integer())
				word = value.dump();
			else
				fail(object.path("params") + "." + item.key(), "is neither a string nor an integer");
			if (!is_word(item.key()) || !is_word(word))
				fail(object.path("params") + "." + item.key(), "is empty or has a blank in it");
			disk.params.emplace_back(item.key(), word);
		}
	}
	return disk;
}

} // namespace

std::vector<std::byte> encode(std::string_view text)
{
	if (text.size() > std::numeric_limits<std::uint32_t>::max())
		fail("text", "is too long");
	std::vector<std::byte> bytes(header_bytes + text.size());
	const auto length = std::uint32_t(text.size());
	std::memcpy(bytes.data(), magic.data(), magic.size());
	std::memcpy(bytes.data() + 8, &version, sizeof version);
	std::memcpy(bytes.data() + 12, &length, sizeof length);
	std::memcpy(bytes.data() + header_bytes, text.data(), text.size());
	return bytes;
}

std::string_view decode(std::span<const std::byte> region)
{
	if (region.size() < header_bytes)
		fail("byte 0", "the region is smaller than the header");
	if (std::memcmp(region.data(), magic.data(), magic.size()) != 0)
		fail("byte 0", "no PGOUTJOB header: the host left no job here");
	std::uint32_t found_version, length;
	std::memcpy(&found_version, region.data() + 8, sizeof found_version);
	std::memcpy(&length, region.data() + 12, sizeof length);
	if (found_version != version)
		fail("byte 8", "version " + std::to_string(found_version) + ", this guest reads " + std::to_string(version));
	if (length > region.size() - header_bytes)
		fail("byte 12", "a text of " + std::to_string(length) + " bytes does not fit the region");
	return {reinterpret_cast<const char *>(region.data()) + header_bytes, length};
}

std::string Disk::add_line() const
{
	std::string line = "name=" + name + " model=" + model + " phys=" + std::to_string(phys) +
			   " bytes=" + std::to_string(bytes);
	for (const auto &[key, value] : params)
		line += " " + key + "=" + value;
	return line;
}

Job parse(std::string_view text)
{
	Json json;
	try {
		json = Json::parse(text);
	} catch (const Json::parse_error &error) {
		fail("byte " + std::to_string(header_bytes + error.byte), error.what());
	}
	const Object object(json, "job");
	object.known({"schema", "mode", "lru", "page_cluster", "settings", "disks", "trace", "trace_buffers", "workload",
		      "fio_job", "probe", "clock", "virtual_limit_s"});
	if (object.text("schema") != "pageout-job/1")
		fail("job.schema", "\"" + object.text("schema") + "\" is not pageout-job/1");

	Job job;
	job.mode = object.choice<Mode>("mode", {{"run", Mode::run}, {"kunit", Mode::kunit}});
	if (job.mode == Mode::kunit)
		return job;
	job.lru = object.choice<Lru>("lru", {{"classic", Lru::classic}, {"mglru", Lru::mglru}});
	job.page_cluster = int(object.integer("page_cluster", 0, 31));
	job.clock = object.choice<Clock>("clock", {{"virtual", Clock::virtual_time}, {"host", Clock::host}});
	job.virtual_limit_s = std::uint64_t(object.integer("virtual_limit_s", 1, 1'000'000));
	job.probe = object.boolean("probe", false);

	if (object.find("settings")) {
		std::size_t index = 0;
		for (const auto &item : object.array("settings")) {
			const Object setting(item, "job." + element("settings", index++));
			setting.known({"path", "value", "optional"});
			job.settings.push_back({setting.text("path"), setting.text("value"), setting.boolean("optional", false)});
			if (!job.settings.back().path.starts_with('/'))
				fail(setting.path("path"), "is not an absolute path");
		}
	}

	std::size_t index = 0;
	for (const auto &item : object.array("disks")) {
		const auto where = "job." + element("disks", index++);
		Disk disk = parse_disk(item, where);
		for (const auto &other : job.disks)
			if (other.name == disk.name)
				fail(where, "a second disk named \"" + disk.name + "\"");
		job.disks.push_back(std::move(disk));
	}

	index = 0;
	for (const auto &item : object.array("trace")) {
		const auto where = "job." + element("trace", index++);
		if (!item.is_string())
			fail(where, "is not a string");
		const auto name = item.get<std::string>();
		if (std::none_of(job.disks.begin(), job.disks.end(), [&](const Disk &disk) { return disk.name == name; }))
			fail(where, "there is no disk \"" + name + "\"");
		if (std::find(job.trace.begin(), job.trace.end(), name) != job.trace.end())
			fail(where, "\"" + name + "\" is named twice");
		job.trace.push_back(name);
	}
	if (!job.trace.empty()) {
		const Object buffers(object.need("trace_buffers"), "job.trace_buffers");
		buffers.known({"kib", "count"});
		job.trace_buffer_kib = unsigned(buffers.integer("kib", 4, 65536));
		job.trace_buffer_count = unsigned(buffers.integer("count", 2, 1024));
	}

	if (const Json *fio = object.find("fio_job"); fio && !fio->is_null()) {
		job.fio_job = object.text("fio_job");
		if (job.fio_job.empty() || job.fio_job.find('/') != std::string::npos)
			fail("job.fio_job", "\"" + job.fio_job + "\" is not the name of a file in /jobs");
	}
	if (const Json *workload = object.find("workload"); workload && !workload->is_null()) {
		const Object part(*workload, "job.workload");
		part.known({"argv", "env"});
		index = 0;
		for (const auto &item : part.array("argv")) {
			if (!item.is_string())
				fail("job.workload." + element("argv", index), "is not a string");
			job.argv.push_back(item.get<std::string>());
			++index;
		}
		if (const Json *env = part.find("env")) {
			if (!env->is_object())
				fail("job.workload.env", "is not an object");
			for (const auto &item : env->items()) {
				if (!item.value().is_string())
					fail("job.workload.env." + item.key(), "is not a string");
				job.env.emplace_back(item.key(), item.value().get<std::string>());
			}
		}
	}
	if (job.argv.empty() && job.fio_job.empty())
		fail("job.workload", "neither workload.argv nor fio_job says what to run");
	return job;
}

} // namespace pageout::job
