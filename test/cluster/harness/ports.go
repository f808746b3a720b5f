package harness

import (
	"errors"
	"net"
	"strconv"
	"sync"
)

// errPortTaken is returned if another process has taken a free port before the server listened.
var errPortTaken = errors.New("a port that was free has been taken")

// ports are the ports of the servers of one cluster. Servers that accept "any port" are not
// included.
type ports struct{ api, etcd, peer int }

func (ports) address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePorts returns ports that were free a moment ago.
func freePorts() (ports, error) {
	n, err := FreePorts(3)
	if err != nil {
		return ports{}, err
	}
	return ports{api: n[0], etcd: n[1], peer: n[2]}, nil
}

// returnedPorts holds the ports that were already returned: their servers may not listen yet.
var returnedPorts struct {
	sync.Mutex
	ports map[int]bool
}

// FreePorts returns n different loopback ports that were free a moment ago, for servers that cannot select a
// port themselves. No call returns a port that was returned before.
func FreePorts(n int) ([]int, error) {
	returnedPorts.Lock()
	defer returnedPorts.Unlock()
	if returnedPorts.ports == nil {
		returnedPorts.ports = map[int]bool{}
	}
	var free []int
	for len(free) < n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // held until all are chosen, so that they differ
		if port := l.Addr().(*net.TCPAddr).Port; !returnedPorts.ports[port] {
			returnedPorts.ports[port] = true
			free = append(free, port)
		}
	}
	return free, nil
}
