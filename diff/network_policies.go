package diff

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/boxset"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

func networkPolicyRules() []RuleInfo {
	return []RuleInfo{
		{"network.allowed", High, "NetworkPolicy allows more traffic", "traffic that NetworkPolicies blocked can now reach or leave the pods"},
		{"network.service", High, "Service that selects pods of others", "the pods get traffic that is for others, or clients reach pods of others"},
		{"network.namespace", Medium, "namespace selected differently", "the labels of the namespace changed: a webhook or NetworkPolicy newly covers the namespace, or no longer covers it"},
		{"network.blocked", Medium, "NetworkPolicy blocks more traffic", "connections that worked are refused"},
	}
}

const networkPolicyKind = "NetworkPolicy.networking.k8s.io"

// compareNetworkPolicies compares the traffic that NetworkPolicies allow. It skips removed NetworkPolicies,
// which rule data.policy-removed reports.
func compareNetworkPolicies(c *comparison) {
	c.each(func(p pair) {
		if p.after == nil {
			return
		}
		r := newRanges()
		before, after := r.compare(p)
		f := Finding{Before: before.text, After: after.text, path: fieldAt("spec"), explains: []fieldPath{fieldAt("spec")}}
		if p.before == nil {
			f.explains = wholeObject()
		}
		var more, less []boxset.Box
		for _, d := range []struct {
			to   *[]boxset.Box
			a, b []boxset.Box
		}{{&more, after.allowed, before.allowed}, {&more, before.isolated, after.isolated}, {&less, before.allowed, after.allowed}, {&less, after.isolated, before.isolated}} {
			rest, err := boxset.Minus(d.a, d.b)
			if err != nil {
				f.Message = "traffic was not compared: " + err.Error()
				c.add("network.allowed", p.after, f)
				return
			}
			*d.to = append(*d.to, rest...)
		}
		switch {
		case len(more) > 0 && p.before == nil:
			f.Message = "allows " + formatTraffic(more)
			c.add("network.allowed", p.after, f, r.rate(c, p.after, more))
		case len(more) > 0:
			f.Message = "also allows " + formatTraffic(more)
			c.add("network.allowed", p.after, f)
		case len(less) > 0 && p.before != nil:
			f.Message = "no longer allows " + formatTraffic(less)
			c.add("network.blocked", p.after, f)
		case len(less) > 0:
			f.Message = "allows no traffic of the pods that it selects"
			c.add("network.blocked", p.after, f, Low)
		}
	}, networkPolicyKind)
}

// traffic is the effect of a NetworkPolicy as boxes. The dimensions of a box are the direction, the labels of
// the selected pods ("pod …"), the protocol, the port, and the dimensions of the peer. A peer is described by
// the labels of its namespace and pods ("namespace …", "peer …"), or by its address.
type traffic struct {
	allowed  []boxset.Box
	isolated []boxset.Box // pods and directions for which other traffic is blocked
	text     string
}

// ranges divides addresses and ports into ranges, at the limits that occur in policies. The name of a range
// is its first address or port.
type ranges struct {
	addresses []netip.Addr
	ports     []int
}

func newRanges() *ranges {
	return &ranges{addresses: []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}, ports: []int{0}}
}

// directions returns three names for each direction: the policy type, the field with rules, the field with
// peers.
func directions() [][3]string {
	return [][3]string{{"Ingress", "ingress", "from"}, {"Egress", "egress", "to"}}
}

// compare returns the effects of a NetworkPolicy before and after the change. Both use the same ranges.
func (r *ranges) compare(p pair) (before, after traffic) {
	for _, o := range []*Object{p.before, p.after} {
		if o != nil {
			r.collect(o.Content)
		}
	}
	if p.before != nil {
		before = r.traffic(p.before.Content)
	}
	return before, r.traffic(p.after.Content)
}

func (r *ranges) collect(policy map[string]any) {
	for _, d := range directions() {
		for _, rule := range k8s.Items(policy, "spec", d[1]) {
			for _, peer := range k8s.Items(rule, d[2]) {
				for _, cidr := range append(k8s.Texts(peer, "ipBlock", "except"), k8s.Text(peer, "ipBlock", "cidr")) {
					if prefix, err := netip.ParsePrefix(cidr); err == nil {
						r.addresses = append(r.addresses, prefix.Masked().Addr(), lastAddress(prefix).Next())
					}
				}
			}
			for _, port := range k8s.Items(rule, "ports") {
				if first, last, ok := portRange(port); ok {
					r.ports = append(r.ports, first, last+1)
				}
			}
		}
	}
	r.addresses = slices.DeleteFunc(r.addresses, func(a netip.Addr) bool { return !a.IsValid() })
	slices.SortFunc(r.addresses, netip.Addr.Compare)
	r.addresses = slices.Compact(r.addresses)
	slices.Sort(r.ports)
	r.ports = slices.Compact(r.ports)
}

func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// portRange returns the first and last port of an entry. It returns false for a named port, and if
// all ports are allowed.
func portRange(port map[string]any) (first, last int, ok bool) {
	n, ok := port["port"].(int64)
	if !ok {
		return 0, 0, false
	}
	end, ranged := port["endPort"].(int64)
	if !ranged {
		end = n
	}
	return int(n), int(end), true
}

// addressesIn returns the names of the ranges in a CIDR block.
func (r *ranges) addressesIn(cidr string) []string {
	prefix, err := netip.ParsePrefix(cidr)
	var out []string
	for _, a := range r.addresses {
		if err == nil && a.Is4() == prefix.Addr().Is4() && prefix.Contains(a) {
			out = append(out, a.String())
		}
	}
	return out
}

// traffic returns the effect of a policy.
func (r *ranges) traffic(policy map[string]any) traffic {
	pods := labelBox("pod ", k8s.Map(policy, "spec", "podSelector"))
	namespace := k8s.Text(policy, "metadata", "namespace")
	types := k8s.Texts(policy, "spec", "policyTypes")
	t := traffic{text: formatValue(k8s.At(policy, "spec"))}
	for _, d := range directions() {
		if !slices.Contains(types, d[0]) && (len(types) > 0 || d[0] == "Egress" && len(k8s.List(policy, "spec", "egress")) == 0) {
			continue // the default is Ingress, and Egress if there are egress rules
		}
		box := pods.And(boxset.Box{"direction": boxset.Of(d[0])})
		if box.Empty() {
			continue
		}
		t.isolated = append(t.isolated, box)
		for _, rule := range k8s.Items(policy, "spec", d[1]) {
			for _, peer := range r.peers(k8s.List(rule, d[2]), namespace) {
				for _, port := range r.portBoxes(k8s.List(rule, "ports")) {
					if one := box.And(peer).And(port); !one.Empty() {
						t.allowed = append(t.allowed, one)
					}
				}
			}
		}
	}
	return t
}

// notPod is the value of the dimension "address" for traffic with pods.
const notPod = "pod"

// peers returns the peers of a rule. An empty list means all peers.
func (r *ranges) peers(list []any, namespace string) []boxset.Box {
	if len(list) == 0 {
		return []boxset.Box{{}}
	}
	var out []boxset.Box
	for _, e := range list {
		peer := asMap(e)
		if block := k8s.Map(peer, "ipBlock"); block != nil {
			in := boxset.Of(r.addressesIn(k8s.Text(block, "cidr"))...)
			for _, except := range k8s.Texts(block, "except") {
				in = in.Minus(boxset.Of(r.addressesIn(except)...))
			}
			out = append(out, boxset.Box{"address": in})
			continue
		}
		box := labelBox("peer ", k8s.Map(peer, "podSelector")).And(boxset.Box{"address": boxset.Of(notPod)})
		if selector, selects := peer["namespaceSelector"]; selects && selector != nil {
			box = box.And(labelBox("namespace ", asMap(selector)))
		} else {
			box["namespace kubernetes.io/metadata.name"] = boxset.Of(namespace)
		}
		out = append(out, box)
	}
	return out
}

// portBoxes returns the ports of a rule. An empty list means all ports of all protocols.
func (r *ranges) portBoxes(list []any) []boxset.Box {
	if len(list) == 0 {
		return []boxset.Box{{}}
	}
	var out []boxset.Box
	for _, e := range list {
		port := asMap(e)
		box := boxset.Box{"protocol": boxset.Of(cmp.Or(k8s.Text(port, "protocol"), "TCP"))}
		if first, last, numbered := portRange(port); numbered {
			var in []string
			for _, n := range r.ports {
				if n >= first && n <= last {
					in = append(in, strconv.Itoa(n))
				}
			}
			box["port"] = boxset.Of(in...)
		} else if name := k8s.Text(port, "port"); name != "" {
			box["port"] = boxset.Of(name)
		}
		out = append(out, box)
	}
	return out
}

// rate returns the severity of the traffic that a new policy allows. Egress of the operator's own pods is low.
// Other traffic is high if it uses most ports, and its peers are the pods of all namespaces or most addresses;
// for pods of others, most addresses are enough. The rest is medium if labels select pods of others, else low.
func (r *ranges) rate(c *comparison, o *Object, allowed []boxset.Box) Severity {
	foreign := !c.selectsOwnPods(o)
	for _, d := range directions() {
		var addresses, ports, ofAllPods boxset.Values
		for _, box := range allowed {
			if !box.In("direction").Has(d[0]) {
				continue
			}
			addresses, ports = addresses.Or(box.In("address")), ports.Or(box.In("port"))
			if allPods(box) {
				ofAllPods = ofAllPods.Or(box.In("port"))
			}
		}
		if (foreign || d[0] == "Ingress") && (r.mostPorts(ofAllPods) || r.mostAddresses(addresses) && (foreign || r.mostPorts(ports))) {
			return High
		}
	}
	if foreign && !matchesEverything(k8s.Map(o.Content, "spec"), "podSelector") {
		return Medium
	}
	return Low
}

// allPods reports whether a box has the pods of all namespaces.
func allPods(box boxset.Box) bool {
	for d, v := range box {
		if _, except := v.List(); (strings.HasPrefix(d, "namespace ") || strings.HasPrefix(d, "peer ")) && !except {
			return false
		}
	}
	return box.In("address").Has(notPod)
}

// mostPorts reports whether a set has at least half of all ports.
func (r *ranges) mostPorts(v boxset.Values) bool {
	n := 0
	for i, first := range r.ports {
		next := 1 << 16
		if i+1 < len(r.ports) {
			next = min(next, r.ports[i+1])
		}
		if v.Has(strconv.Itoa(first)) {
			n += max(0, next-first)
		}
	}
	return n >= 1<<15
}

// mostAddresses reports whether a set has at least half of all IPv4 addresses, or an eighth of all IPv6
// addresses. The public Internet uses only an eighth of the IPv6 addresses.
func (r *ranges) mostAddresses(v boxset.Values) bool {
	var n4, n6 float64
	for i, first := range r.addresses {
		if !v.Has(first.String()) {
			continue
		}
		size := func(a netip.Addr) float64 {
			b := a.As16()
			if a.Is4() {
				return float64(binary.BigEndian.Uint32(b[12:]))
			}
			return float64(binary.BigEndian.Uint64(b[:8]))
		}
		end := map[bool]float64{true: 1 << 32, false: 1 << 64}[first.Is4()]
		if i+1 < len(r.addresses) && r.addresses[i+1].Is4() == first.Is4() {
			end = size(r.addresses[i+1])
		}
		if first.Is4() {
			n4 += end - size(first)
		} else {
			n6 += end - size(first)
		}
	}
	return n4 >= 1<<31 || n6 >= 1<<61
}

// selectsOwnPods reports whether a NetworkPolicy selects pods of its operator by labels, and no pods
// of others.
func (c *comparison) selectsOwnPods(o *Object) bool {
	selector, ok := k8s.SelectorOf(k8s.Map(o.Content, "spec", "podSelector"))
	if !ok || selector.Empty() {
		return false
	}
	own := false
	for _, w := range c.after.order {
		if w.Key().Namespace != o.Key().Namespace {
			continue
		}
		for _, pod := range k8s.PodTemplates(w.Content) {
			if selector.Matches(labels.Set(k8s.TextMap(pod.Metadata, "labels"))) {
				if w.Operator != o.Operator {
					return false
				}
				own = true
			}
		}
	}
	return own
}

// formatTraffic formats the peers and ports of boxes for display.
func formatTraffic(boxes []boxset.Box) string {
	var out []string
	for _, box := range boxes {
		var limits []string
		for _, d := range sortedKeys(box) {
			list, except := box[d].List()
			switch {
			case d == "direction":
			case except && len(list) > 0:
				limits = append(limits, d+" not "+strings.Join(list, ","))
			case !except:
				limits = append(limits, d+" "+strings.Join(list, ","))
			}
		}
		list, _ := box.In("direction").List()
		out = append(out, strings.ToLower(strings.Join(list, ","))+" "+cmp.Or(strings.Join(limits, " and "), "all traffic"))
	}
	return diag.Some(slices.Compact(slices.Sorted(slices.Values(out))), 4)
}
