//! Keys as stories.
