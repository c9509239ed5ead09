mod coverage;
mod files;
mod groups;
mod sampling;
mod suggestions;
