package trace

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Ports is a range of TCP ports, the last one included.
type Ports struct{ First, Last int }

// String writes the range as "20380-20388".
func (p Ports) String() string { return fmt.Sprintf("%d-%d", p.First, p.Last) }

// Overlaps tells whether the ranges have a port in common.
func (p Ports) Overlaps(q Ports) bool { return p.First <= q.Last && q.First <= p.Last }

// Contains tells whether the range has the port.
func (p Ports) Contains(port int) bool { return p.First <= port && port <= p.Last }

// BlockPorts returns the ports that the workers of a fleet of dpSize data-parallel ranks
// bind: a publisher for each rank from base on and, with more than one rank, the one
// behind them, where rank 0 listens while it benchmarks itself. The error says that the
// block does not fit below 65536.
func BlockPorts(base, dpSize int) (Ports, error) {
	block := Ports{base, base}
	if dpSize > 1 {
		block.Last += dpSize
	}
	if base < 1 || block.Last > math.MaxUint16 {
		return Ports{}, fmt.Errorf("ports %s are not all from 1 to %d", block, math.MaxUint16)
	}
	return block, nil
}

// ephemeralFile holds the kernel's range. It is that of the network name space of the
// reader, so of the pod in a container.
const ephemeralFile = "/proc/sys/net/ipv4/ip_local_port_range"

// EphemeralPorts returns the range from which this host takes the local ports of outbound
// connections. The error says why it is not known, as on systems that are no Linux.
func EphemeralPorts() (Ports, error) {
	text, err := os.ReadFile(ephemeralFile)
	if err != nil {
		return Ports{}, err
	}
	return ParseEphemeralPorts(string(text))
}

// ParseEphemeralPorts reads the text of ip_local_port_range: two ports between white
// space.
func ParseEphemeralPorts(text string) (Ports, error) {
	fields := strings.Fields(text)
	if len(fields) == 2 {
		low, notLow := strconv.ParseUint(fields[0], 10, 16)
		high, notHigh := strconv.ParseUint(fields[1], 10, 16)
		if notLow == nil && notHigh == nil && low <= high {
			return Ports{int(low), int(high)}, nil
		}
	}
	return Ports{}, fmt.Errorf("%s: %.40q is not a range of ports", ephemeralFile, text)
}

// EphemeralOverlap returns a warning when a block of publishers' ports overlaps the
// host's ephemeral range, and "" when it does not.
func EphemeralOverlap(block, ephemeral Ports) string {
	if !block.Overlaps(ephemeral) {
		return ""
	}
	return fmt.Sprintf("FPM ports %s overlap this host's ephemeral port range %s; an outbound connection can take one of them first"+
		" and the publisher bind then fails intermittently. Set %s to a base below %d.", block, ephemeral, EnvBasePort, ephemeral.First)
}

// HighestBase returns the highest base port from which a block of the same size lies below
// an ephemeral range, 0 when there is none.
func HighestBase(block, ephemeral Ports) int {
	return max(0, ephemeral.First-1-(block.Last-block.First))
}

// NotAPublisher returns a warning when port is the one behind the publishers of a fleet
// of dpSize ranks from base on, and "" otherwise. Nothing is published there: with more
// than one rank, rank 0 binds a socket of another type to it during a self-benchmark.
func NotAPublisher(port, base, dpSize int) string {
	if dpSize < 1 || port != base+dpSize {
		return ""
	}
	ranks := fmt.Sprintf("%d ranks publish on the ports %s", dpSize, Ports{base, base + dpSize - 1})
	if dpSize == 1 {
		ranks = fmt.Sprintf("one rank publishes on port %d", base)
	}
	return fmt.Sprintf("port %d is not a publisher: %s; rank 0 may bind a socket of another type to the one behind", port, ranks)
}
