// Put the page together.
const failed = Object.entries(data.failed).map(([target, reason]) => `${target}: ${reason}`).join("; ");
const notices = [failed, report.plans_not_asked && `Plans were not asked for: ${report.plans_not_asked}.`, ...report.refused.map((plan) => `The library refused ${plan.summary} (${plan.nodes}): ${plan.reason}`)];
byId("notice").hidden = !notices.some(Boolean);
byId("notice").append(...notices.filter(Boolean).map((text) => make("span", { class: "line" }, own(text))));
byId("measure-label").hidden = true;
useTheme();
drawReport();
useGraph();
